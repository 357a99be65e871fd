//! What is said of an estimator that is on its way, and what is left of it in its member.

use crds::Reason;
use serde_json::Value;

use super::super::super::names::is_made_for;
use super::super::action::Place;
use super::super::cleaning::{Cleaning, KINDS_OF_MEMBER, by_kind};
use super::super::context::Context;
use super::super::estimator::ACCOUNT;
use super::super::observed::is_of;
use crate::addon::Problem;

pub(super) fn progressing(message: impl Into<String>) -> Problem {
    Problem { reason: Reason::EstimatorProgressing, message: message.into() }
}

/// What is left in a member that stays one.
pub(super) fn in_the_member<'a>(context: &Context<'a>) -> Cleaning<'a> {
    let listed = context.seen.map(|seen| seen.listed.as_slice()).unwrap_or_default();
    let is_its = |live: &&Value| {
        let is_ours = is_made_for(live, context.observed.object);
        is_ours && is_of(live, &context.target.name) && live["metadata"]["name"] == ACCOUNT
    };
    by_kind(Place::Member, listed.iter().filter(is_its).collect(), &KINDS_OF_MEMBER)
}
