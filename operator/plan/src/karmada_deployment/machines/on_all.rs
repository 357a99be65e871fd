//! A run on several machines of a plane together, which is repeated on all of them: whether its next attempt is due.

use crds::Reason;
use crds::commands::Target as Object;
use jiff::Timestamp;

use super::proposal::Proposal;
use super::state::PlaneState;
use crate::attempts::{self, Failure, RetryDecision};
use crate::cluster_machine::ClusterMachine;
use crate::message::{count, quote};
use crate::moment::clock;
use crate::run_request::Target;

/// What such a run is called, and why it does not go on.
#[derive(Clone, Copy)]
pub(super) struct Told {
    /// `the install`.
    pub title: &'static str,
    /// While it works.
    pub doing: Reason,
    /// Where it has failed.
    pub failed: Reason,
}

/// What the machines' attempts together come to.
pub(super) enum Due<'a> {
    /// This attempt, on these machines.
    Now { targets: Vec<Target<'a>>, number: i32 },
    /// Why it is not made.
    NotNow(Proposal),
}

/// Decides, by what is decided of each of the machines.
pub(super) fn due<'a>(
    state: &PlaneState<'a>,
    told: Told,
    machines: &[ClusterMachine<'a>],
    decision: impl Fn(&ClusterMachine<'a>) -> RetryDecision,
) -> Due<'a> {
    let (mut targets, mut number): (Vec<Target<'a>>, i32) = (Vec::new(), 0);
    let mut later: Option<(Timestamp, Failure, String)> = None;
    for machine in machines.iter().copied() {
        match decision(&machine) {
            RetryDecision::Now { attempt, retry, .. } => {
                number = number.max(attempt);
                targets.push((machine, retry));
            }
            // It is played there again with the others: every step may be.
            RetryDecision::Done { .. } => targets.push((machine, None)),
            RetryDecision::UnderWay { run } => {
                return Due::NotNow(Proposal::under_way(told.doing, format!("run {run}")));
            }
            RetryDecision::Halted { failures, cause } => {
                let message = format!(
                    "{} failed on {} after {} ({}); correct it, then {}",
                    told.title,
                    machine.title(),
                    count(failures, "attempt"),
                    attempts::why_halted(cause.as_ref()),
                    retry(state)
                );
                return Due::NotNow(Proposal::under_way(told.failed, message));
            }
            RetryDecision::Later { at, cause, .. } => {
                if later.as_ref().is_none_or(|(other, ..)| *other < at) {
                    later = Some((at, cause, machine.title()));
                }
            }
        }
    }
    match later {
        None => Due::Now { targets, number },
        Some((at, cause, title)) => {
            let message =
                format!("{} failed on {title} ({}); tried again at {}", told.title, quote(cause.told()), clock(at));
            Due::NotNow(Proposal::under_way(told.failed, message).at(state, at))
        }
    }
}

/// What a person types to have another attempt.
pub(super) fn retry(state: &PlaneState<'_>) -> String {
    attempts::retry_command(Object::KarmadaDeployment, &state.object.metadata)
}
