//! When a request is answered, and why then. An answer is given once.

use crds::{ClusterDeployment, MachineRequest, ObjectExt, Reason};
use jiff::{SignedDuration, Timestamp};

use super::members::Members;
use super::observed::Observed;

/// Where the request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Its Machines are waited for, at most so long.
    Open { left_seconds: u64 },
    /// It is answered now, for this reason.
    Now(Reason),
    /// It was answered before.
    Given,
}

/// Whether the request was answered.
pub fn is_answered(request: &MachineRequest) -> bool {
    let status = request.status.as_ref();
    status.is_some_and(|status| status.answered_at.is_some())
}

pub(super) fn answer(observed: &Observed<'_>, members: &Members<'_>) -> Answer {
    let request = observed.request;
    if is_answered(request) {
        return Answer::Given;
    }
    if members.delivered().count() >= request.spec.wanted() {
        return Answer::Now(Reason::AllReady);
    }
    if request.spec.cancel {
        return Answer::Now(Reason::RequestCanceled);
    }
    // Its Machines are deleted with it, and it makes no others.
    if observed.deployment.is_some_and(ClusterDeployment::is_deleting) {
        return Answer::Now(Reason::ClusterDeleting);
    }
    let left = deadline(request, observed.now).duration_since(observed.now);
    match u64::try_from(left.as_secs()) {
        Ok(left_seconds) if left.is_positive() => Answer::Open { left_seconds: left_seconds.max(1) },
        _ => Answer::Now(Reason::RequestTimedOut),
    }
}

/// When it is answered at the latest.
pub(super) fn deadline(request: &MachineRequest, now: Timestamp) -> Timestamp {
    let made = request.created_at().map_or(now, |made| made.0);
    made.saturating_add(SignedDuration::from_secs(request.spec.deadline_seconds.into())).unwrap_or(now)
}
