//! What a restore left on the machines: the snapshot, and the data of before. It goes once it has been kept for long
//! enough, or when the EtcdRestore is deleted; what was never used goes at once.

use crds::etcd_restore::RestorePhase;
use crds::{EtcdRestoreStatus, KarmadaDeployment, ObjectExt, PlaybookRun};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::action::Action;
use super::observed::Observed;
use super::runs::{self, Runs};
use crate::attempts::{self, Attempt};
use crate::formed_cluster::FormedCluster;
use crate::moment::after;
use crate::{Next, Plan};

/// What becomes of them.
pub(super) enum Leftovers {
    /// They stay; look again then.
    Stay(Next),
    /// This run removes them.
    Go(Box<PlaybookRun>),
    /// There are none any more, or nobody can remove them.
    Gone(Option<Time>),
}

impl Leftovers {
    /// Does so, beside what is done anyway. Once nothing is left, an EtcdRestore that is deleted may go.
    pub fn add_to(self, plan: &mut Plan<Action, EtcdRestoreStatus>, is_deleting: bool) {
        match self {
            Self::Stay(next) => plan.next = plan.next.or_sooner(next),
            Self::Go(run) => plan.actions.push(Action::Begin(run)),
            Self::Gone(at) => {
                plan.status.old_data_removed_at = plan.status.old_data_removed_at.take().or(at);
                if is_deleting {
                    plan.actions = vec![Action::RemoveFinalizer];
                }
            }
        }
    }
}

/// Of a restore by these runs.
pub(super) fn of_cluster(observed: &Observed<'_>, runs: &Runs<'_>, status: &EtcdRestoreStatus) -> Leftovers {
    let deployment = observed.deployment.filter(|there| !there.is_deleting() && !runs.staging.is_empty());
    leftovers(observed, deployment.map(FormedCluster::from), &runs.removing, status)
}

/// Of one that its plane has carried out.
pub(super) fn of_plane(observed: &Observed<'_>, status: &EtcdRestoreStatus) -> Leftovers {
    let is_on_machines = |plane: &&KarmadaDeployment| plane.spec.binary.is_some() && !plane.is_deleting();
    let plane = observed.plane.filter(is_on_machines).filter(|_| status.began_at.is_some());
    leftovers(observed, plane.map(FormedCluster::from), &runs::removing(observed), status)
}

/// `of`: on whose machines they are; none: the machines have none, or are cleaned.
fn leftovers(
    observed: &Observed<'_>,
    of: Option<FormedCluster<'_>>,
    removing: &[&PlaybookRun],
    status: &EtcdRestoreStatus,
) -> Leftovers {
    let restore = observed.restore;
    let (Some(_), Some(finished)) = (status.phase.and_then(RestorePhase::end), &status.finished_at) else {
        return Leftovers::Stay(Next::OnChange);
    };
    let was_used = status.phase != Some(RestorePhase::Failed);
    let kept = if was_used { restore.spec.keep_old_data_seconds } else { 0 };
    let Some(of) = of.filter(|_| status.old_data_removed_at.is_none()) else { return Leftovers::Gone(None) };
    let due = after(finished.0, SignedDuration::from_secs(kept.into()));
    if due > observed.now && !restore.is_deleting() {
        let seconds = u64::try_from(due.as_second() - observed.now.as_second()).unwrap_or_default();
        return Leftovers::Stay(Next::after_seconds(seconds + 1));
    }
    match attempts::last(removing, |run| runs::has_succeeded(run).then_some(())) {
        Attempt::UnderWay(_) => Leftovers::Stay(Next::OnChange),
        Attempt::Made(run, ()) => Leftovers::Gone(attempts::ended_at(run).map(Time)),
        // A machine that is away keeps them until it is reset; the message of the run says which.
        Attempt::GivenUp(..) => Leftovers::Gone(None),
        Attempt::Failed(_, at) if at > observed.now => {
            let seconds = u64::try_from(at.as_second() - observed.now.as_second()).unwrap_or_default();
            Leftovers::Stay(Next::after_seconds(seconds + 1))
        }
        Attempt::None | Attempt::Failed(..) => {
            Leftovers::Go(Box::new(runs::remove(observed, of, attempts::next_number(removing))))
        }
    }
}
