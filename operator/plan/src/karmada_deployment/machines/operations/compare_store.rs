//! Compares the machines with the store, which may have been set back to an older state: holds all else until every
//! machine was looked at and a person has approved what contradicts, and then adopts what the machines know. Nothing is
//! reset by that.

use crds::Reason;
use crds::commands::{self, Target};
use crds::names::annotation;

use super::super::act::Act;
use super::super::part_wanted::Basis;
use super::super::proposal::{Proposal, Round};
use super::super::state::PlaneState;
use crate::addon::Problem;
use crate::store::adoption;
use crate::store::verdict::{self, Verdict};
use crate::{Next, approval};

/// Looks again after this for what nobody tells.
const AGAIN_SECONDS: u64 = 30;

pub(super) fn propose(state: &PlaneState<'_>, _: &Basis<'_>, _: &Round) -> Proposal {
    let Some(Verdict { reason, message, .. }) = verdict(state) else { return Proposal::default() };
    // Until all were looked at, nothing is known to be wrong.
    let problem = (reason != Reason::LookingAtMachines).then_some(Problem { reason, message });
    Proposal {
        acts: adopt(state),
        next: Next::after_seconds(AGAIN_SECONDS),
        problem,
        holds: state.comparison.holds(),
        ..Proposal::default()
    }
}

/// Nothing where nothing speaks against the store.
pub(in super::super) fn verdict(state: &PlaneState<'_>) -> Option<Verdict> {
    let metadata = &state.object.metadata;
    verdict::verdict(&state.comparison, |value| {
        let value = approval::to_write(metadata, value);
        commands::annotate(Target::KarmadaDeployment, metadata, annotation::APPROVE, value)
    })
}

/// What makes the objects say what the machines do, once that is approved.
pub(in super::super) fn adopt(state: &PlaneState<'_>) -> Vec<Act> {
    let adopted = adoption::adopt(&state.comparison, &state.object.metadata, &state.machines, state.now);
    adopted.into_iter().map(Act::Adopt).collect()
}
