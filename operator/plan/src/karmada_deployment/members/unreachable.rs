//! Why a member does not answer the operator.

use crds::Reason;

use super::super::contact::Contact;
use super::context::Context;
use super::host_reading::{advice, reading};
use crate::addon::Problem;
use crate::message::quote;

/// Why it does not answer.
pub(super) fn unreachable(context: &Context<'_>) -> Problem {
    let reading = reading(context).problem;
    if let Some(problem) = context.member.and_then(|member| member.kubeconfig.clone()) {
        return reading.unwrap_or(problem);
    }
    let why = match context.member.map(|member| &member.contact) {
        Some(Contact::Lost(why)) => format!(": {}", quote(why.clone())),
        _ => String::new(),
    };
    let others = advice(context).into_iter().chain(reading.map(|problem| problem.message));
    let others: String = others.map(|one| format!("; {one}")).collect();
    let message = format!("its API does not answer the operator{why}{others}");
    Problem { reason: Reason::MemberUnreachable, message }
}
