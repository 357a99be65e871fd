//! What a restore left on the machines: the snapshot, and the data of before. It goes once it has been kept for long
//! enough, or when the EtcdRestore is deleted; what was never used goes at once.

use crds::etcd_restore::RestorePhase;
use crds::{EtcdRestoreStatus, ObjectExt, PlaybookRun};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observed::Observed;
use super::runs::{self, Runs};
use crate::Next;
use crate::attempts::{self, Attempt};
use crate::moment::after;

/// What becomes of them.
pub(super) enum Leftovers {
    /// They stay; look again then.
    Stay(Next),
    /// This run removes them.
    Go(Box<PlaybookRun>),
    /// There are none any more, or nobody can remove them.
    Gone(Option<Time>),
}

pub(super) fn leftovers(observed: &Observed<'_>, runs: &Runs<'_>, status: &EtcdRestoreStatus) -> Leftovers {
    let restore = observed.restore;
    let (Some(_), Some(finished)) = (status.phase.and_then(RestorePhase::end), &status.finished_at) else {
        return Leftovers::Stay(Next::OnChange);
    };
    let was_used = status.phase != Some(RestorePhase::Failed);
    let kept = if was_used { restore.spec.keep_old_data_seconds } else { 0 };
    let deployment = observed.deployment.filter(|there| !there.is_deleting());
    // The machines of a cluster that goes are cleaned.
    let (Some(deployment), false) = (deployment, runs.staging.is_empty() || status.old_data_removed_at.is_some())
    else {
        return Leftovers::Gone(None);
    };
    let due = after(finished.0, SignedDuration::from_secs(kept.into()));
    if due > observed.now && !restore.is_deleting() {
        let seconds = u64::try_from(due.as_second() - observed.now.as_second()).unwrap_or_default();
        return Leftovers::Stay(Next::after_seconds(seconds + 1));
    }
    match attempts::last(&runs.removing, |run| runs::has_succeeded(run).then_some(())) {
        Attempt::UnderWay(_) => Leftovers::Stay(Next::OnChange),
        Attempt::Made(run, ()) => Leftovers::Gone(attempts::ended_at(run).map(Time)),
        // A machine that is away keeps them until it is reset; the message of the run says which.
        Attempt::GivenUp(..) => Leftovers::Gone(None),
        Attempt::Failed(_, at) if at > observed.now => {
            let seconds = u64::try_from(at.as_second() - observed.now.as_second()).unwrap_or_default();
            Leftovers::Stay(Next::after_seconds(seconds + 1))
        }
        Attempt::None | Attempt::Failed(..) => {
            Leftovers::Go(Box::new(runs::remove(observed, deployment, attempts::next_number(&runs.removing))))
        }
    }
}
