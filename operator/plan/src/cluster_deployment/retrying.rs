//! How attempts are reported: what failed, when it is tried again, and what to type where it is not.

use crds::Reason;
use crds::names::annotation;
use jiff::Timestamp;

use super::proposal::{Area, Proposal, Severity};
use super::state::ClusterState;
use crate::attempts::{self, Failure, RetryDecision};
use crate::message::count;
use crate::moment::clock;

/// Something that a run does, made again and again until it goes well.
pub(super) struct Effort {
    /// What it is about.
    pub area: Area,
    /// Reason while it fails.
    pub failed: Reason,
    /// `a-control-plane-x7k2 (n1) could not be taken out of etcd`.
    pub could_not: String,
}

impl Effort {
    /// What comes of it: `now` proposes the next attempt, given its number and the retry that it answers. Nothing where
    /// it is done or under way.
    pub fn propose(
        &self,
        state: &ClusterState<'_>,
        decision: RetryDecision,
        now: impl FnOnce(i32, Option<String>) -> Option<Proposal>,
    ) -> Option<Proposal> {
        let report = |message, severity| Proposal::report(self.area, self.failed, message, severity);
        match decision {
            RetryDecision::Now { attempt, retry, .. } => now(attempt, retry),
            RetryDecision::Later { at, cause, .. } => {
                let message = format!("{} ({}); tried again at {}", self.could_not, cause.told(), clock(at));
                Some(report(message, Severity::Failing).at(state, at))
            }
            RetryDecision::Halted { failures, cause } => {
                let message = given_up(state, &self.could_not, failures, cause.as_ref());
                Some(report(message, Severity::Stalled))
            }
            RetryDecision::UnderWay { .. } | RetryDecision::Done { .. } => None,
        }
    }
}

/// `X could not join after 3 attempts (TaskFailed: ...); correct it, then kubectl annotate ...`.
pub(super) fn given_up(state: &ClusterState<'_>, could_not: &str, failures: usize, cause: Option<&Failure>) -> String {
    format!(
        "{could_not} after {} ({}); correct it, then {}",
        count(failures, "attempt"),
        attempts::why_halted(cause),
        retry(state)
    )
}

/// `the install failed after 3 attempts (TaskFailed): ...; correct it, then kubectl annotate ...`.
pub(super) fn failed_after(state: &ClusterState<'_>, failed: &str, failures: usize, cause: &Failure) -> String {
    let Failure { reason, message, .. } = cause;
    let attempts = count(failures, "attempt");
    format!("{failed} after {attempts} ({reason}): {message}; correct it, then {}", retry(state))
}

/// `X failed to join (TaskFailed): ...; tried again, attempt 2 of 3, at 14:03:09 UTC`.
pub(super) fn next_attempt(
    state: &ClusterState<'_>,
    failed: &str,
    failures: usize,
    cause: &Failure,
    at: Timestamp,
) -> String {
    let how = goes_on(cause);
    // One that came further, or could not even begin, is not counted against the limit.
    let which = if cause.unreachable || !cause.has_begun() || cause.waits_for_others() {
        String::new()
    } else {
        let most = state.terms.most;
        format!(", attempt {} of {most},", failures + 1)
    };
    let Failure { reason, message, .. } = cause;
    format!("{failed} ({reason}): {message}; {how}{which} at {}", clock(at))
}

/// What the next attempt does.
pub(super) fn goes_on(cause: &Failure) -> &'static str {
    if (cause.interrupted && cause.has_begun()) || cause.unreachable {
        "goes on where it stopped"
    } else {
        "tried again"
    }
}

/// How a join that is to be tried again ended.
pub(super) fn failed_to_join(title: &str, cause: &Failure) -> String {
    match cause.interrupted {
        true => format!("{title} was interrupted while it joined"),
        false => format!("{title} failed to join"),
    }
}

/// What to type to have another attempt.
pub(super) fn retry(state: &ClusterState<'_>) -> String {
    let value = attempts::next_retry(state.deployment.metadata.annotations.as_ref(), state.generation());
    state.annotate(annotation::RETRY, &value)
}
