//! Holds all else while etcd is set back to a backup, and while what is there is backed up before: the control plane is
//! stopped then, and what a cluster without an
//! API looks like is no reason to do anything about it.

use crds::etcd_restore::RestorePhase;
use crds::step::{Role, Step};
use crds::{EtcdRestore, ObjectExt, PlaybookRun, Reason};

use crate::cluster_deployment::lane::Lane;
use crate::cluster_deployment::proposal::{Area, Proposal, Round, Severity};
use crate::cluster_deployment::state::ClusterState;
use crate::etcd_restore::{is_over, keeps_others_out};

/// All but the lock, which the restore's own runs need, and what is kept of the past.
const BLOCKS: &[Lane] =
    &[Lane::Recovery, Lane::Install, Lane::ControlPlane, Lane::Workers, Lane::Remediation, Lane::Leaving];

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let Some(restore) = state.observed.restores.iter().find(|restore| keeps_others_out(restore)) else {
        return Proposal::default();
    };
    let status = restore.status.as_ref();
    let told = status.and_then(|status| status.message.as_deref()).unwrap_or("it begins");
    let message = format!("EtcdRestore {}: {told}", restore.name());
    let phase = status.and_then(|status| status.phase);
    let (reason, severity) = if phase == Some(RestorePhase::Interrupted) {
        (Reason::RestoreInterrupted, Severity::Stalled)
    } else if phase == Some(RestorePhase::Undoing) {
        (Reason::UndoingRestore, Severity::Progressing)
    } else if phase == Some(RestorePhase::BackingUp) {
        (Reason::BackingUp, Severity::Progressing)
    } else {
        (Reason::Restoring, Severity::Progressing)
    };
    let report = Proposal::report(Area::Machines(Role::ControlPlane), reason, message, severity);
    Proposal { blocks: BLOCKS, ..report }
}

/// How far a restore has come is told by its runs alone.
pub(super) fn keeps(state: &ClusterState<'_>) -> Vec<String> {
    let decides = |restore: &EtcdRestore, run: &PlaybookRun| {
        run.is_owned_by(restore.uid()) && (!is_over(restore) || run.spec.steps.contains(&Step::RemoveOldData))
    };
    let runs = state.observed.runs.iter();
    let kept = runs.filter(|run| state.observed.restores.iter().any(|restore| decides(restore, run)));
    kept.map(|run| run.name().to_owned()).collect()
}
