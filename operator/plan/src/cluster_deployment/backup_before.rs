//! The backup that precedes an upgrade, or the rotation of an authority. What no schedule is for has no storage to put
//! one into.

use crds::names::annotation;
use crds::{EtcdBackup, EtcdBackupSchedule, ObjectExt, Reason};
use jiff::SignedDuration;

use super::action::Action;
use super::proposal::{Area, Proposal, Severity};
use super::restoring;
use super::state::ClusterState;
use crate::etcd_backup_schedule::backup_between;
use crate::moment::after;
use crate::recent_backup::{RecentBackup, recent_backup};

/// It is looked at again so soon while it is being made.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(10);
/// The name by which `spec.preflight.ignore` goes on without.
const IGNORE: &str = "backup";

/// What is done until there is one, for what has this reason while it waits; none: it may begin.
pub(super) fn propose(state: &ClusterState<'_>, reason: Reason, title: &str) -> Option<Proposal> {
    let schedule = schedule(state)?;
    let (now, ours) = (state.observed.now, of_cluster(state));
    let progressing = |what: String| {
        let message = format!("{title}: {what}");
        Proposal::report(Area::Upgrade, reason, message, Severity::Progressing).at(state, after(now, LOOK_AGAIN))
    };
    match recent_backup(now, &ours, |moment| backup_between(schedule, state.deployment, moment)) {
        RecentBackup::There => None,
        RecentBackup::UnderWay(what) => Some(progressing(what)),
        RecentBackup::Wanted(wanted) => {
            let proposal = progressing(format!("EtcdBackup {} is made before", wanted.name()));
            Some(proposal.and(Action::CreateBackup(wanted)))
        }
        RecentBackup::Failed(why, next) => {
            let message = format!("{title}: {why}, or name {IGNORE} in spec.preflight.ignore to go on without");
            Some(Proposal::report(Area::Upgrade, Reason::BackupRequired, message, Severity::Failing).at(state, next))
        }
    }
}

/// What is said ahead, where an upgrade begins without a backup.
pub(super) fn warning(state: &ClusterState<'_>) -> &'static str {
    match (is_ignored(state), schedule(state)) {
        (true, _) => " (no backup precedes it: spec.preflight.ignore names it)",
        (false, None) => " (no backup precedes it: no EtcdBackupSchedule is for the cluster)",
        (false, Some(_)) => "",
    }
}

/// The schedule by which it is made; none: none is wanted, or possible.
fn schedule<'a>(state: &ClusterState<'a>) -> Option<&'a EtcdBackupSchedule> {
    let (deployment, labels) = (state.deployment, state.deployment.metadata.labels.as_ref());
    let is_for = |schedule: &&EtcdBackupSchedule| {
        !schedule.spec.suspend && !schedule.is_deleting() && schedule.spec.selects(deployment.name(), labels)
    };
    let schedules = state.observed.schedules.iter().copied().filter(is_for);
    schedules.min_by_key(|schedule| schedule.name()).filter(|_| !is_ignored(state))
}

fn is_ignored(state: &ClusterState<'_>) -> bool {
    let preflight = state.deployment.spec.preflight.as_ref();
    preflight.is_some_and(|preflight| preflight.ignore.iter().any(|name| name == IGNORE))
}

/// Backups of this very cluster: by what a schedule wrote on them, or by where they are stored.
fn of_cluster<'a>(state: &ClusterState<'a>) -> Vec<&'a EtcdBackup> {
    let is_own = |backup: &&EtcdBackup| {
        let written = backup.annotation(annotation::CLUSTER_UID);
        !backup.is_deleting() && (written == Some(state.uid()) || restoring::is_own(state, backup))
    };
    state.observed.backups.iter().copied().filter(is_own).collect()
}
