//! The backup that precedes an upgrade, or the rotation of an authority: it is the only way back. One of the last hour
//! does; else it is made as the cluster's schedule makes its own. What no schedule is for has no storage to put one
//! into.

use crds::etcd_backup::BackupPhase;
use crds::names::{annotation, condition};
use crds::{Conditions, EtcdBackup, EtcdBackupSchedule, ObjectExt, Reason};
use jiff::{SignedDuration, Timestamp};

use super::action::Action;
use super::proposal::{Area, Proposal, Severity};
use super::restoring;
use super::state::ClusterState;
use crate::etcd_backup_schedule::backup_between;
use crate::message::quote;
use crate::moment::{after, clock};

/// How old it may be when the first machine is touched.
const RECENT: SignedDuration = SignedDuration::from_hours(1);
/// After one that failed the next is made so much later. Whoever decides twice meanwhile makes the same.
const EVERY_SECONDS: i64 = 600;
/// It is looked at again so soon while it is being made.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(10);
/// The name by which `spec.preflight.ignore` goes on without.
const IGNORE: &str = "backup";

/// What is done until there is one, for what has this reason while it waits; none: it may begin.
pub(super) fn propose(state: &ClusterState<'_>, reason: Reason, title: &str) -> Option<Proposal> {
    let schedule = schedule(state)?;
    let ours: Vec<&EtcdBackup> = of_cluster(state).collect();
    if ours.iter().any(|backup| is_recent(state, backup)) {
        return None;
    }
    let now = state.observed.now;
    let progressing = |what: String| {
        let message = format!("{title}: {what}");
        Proposal::report(Area::Upgrade, reason, message, Severity::Progressing).at(state, after(now, LOOK_AGAIN))
    };
    if let Some(backup) = ours.iter().find(|backup| goes_on(backup)) {
        return Some(progressing(format!("waits for EtcdBackup {}{}", backup.name(), said(backup))));
    }
    let wanted = backup_between(schedule, state.deployment, moment(now));
    match ours.iter().find(|backup| backup.name() == wanted.name()) {
        Some(failed) => Some(blocked(state, title, failed)),
        None => {
            let proposal = progressing(format!("EtcdBackup {} is made before", wanted.name()));
            Some(proposal.and(Action::CreateBackup(Box::new(wanted))))
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
fn of_cluster<'a>(state: &ClusterState<'a>) -> impl Iterator<Item = &'a EtcdBackup> {
    let is_own = |backup: &&EtcdBackup| {
        let written = backup.annotation(annotation::CLUSTER_UID);
        !backup.is_deleting() && (written == Some(state.uid()) || restoring::is_own(state, backup))
    };
    state.observed.backups.iter().copied().filter(is_own)
}

/// Whether it is good, verified if that was asked for, and so young that little would be lost.
fn is_recent(state: &ClusterState<'_>, backup: &EtcdBackup) -> bool {
    let completed = backup.good().map(|content| content.completed_at.0);
    let is_young = completed.is_some_and(|completed| after(completed, RECENT) >= state.observed.now);
    is_young && !backup.is_to_be_verified()
}

/// Whether it is being made, or verified.
fn goes_on(backup: &EtcdBackup) -> bool {
    let phase = backup.status.as_ref().and_then(|status| status.phase).unwrap_or(BackupPhase::Pending);
    match phase {
        BackupPhase::Pending | BackupPhase::Running => true,
        BackupPhase::Succeeded => backup.is_to_be_verified(),
        BackupPhase::Failed => false,
    }
}

fn blocked(state: &ClusterState<'_>, title: &str, failed: &EtcdBackup) -> Proposal {
    let next = after(moment(state.observed.now), SignedDuration::from_secs(EVERY_SECONDS));
    let message = format!(
        "{title}: no backup of the last hour: EtcdBackup {} is no good{}; the next one is made at {}; see to its storage, or name {IGNORE} in spec.preflight.ignore to go on without",
        failed.name(),
        said(failed),
        clock(next)
    );
    Proposal::report(Area::Upgrade, Reason::BackupRequired, message, Severity::Failing).at(state, next)
}

/// What it says of itself, for the end of a sentence.
fn said(backup: &EtcdBackup) -> String {
    let verified = backup.condition(condition::VERIFIED).filter(|verified| verified.status != "True");
    let stored = || backup.status.as_ref()?.message.clone();
    let told = verified.map(|verified| verified.message.clone()).or_else(stored);
    told.map(|message| format!(" ({})", quote(message))).unwrap_or_default()
}

/// The same for some time.
fn moment(now: Timestamp) -> Timestamp {
    let second = now.as_second();
    Timestamp::from_second(second - second.rem_euclid(EVERY_SECONDS)).unwrap_or(now)
}
