//! What is wrong with the backups of one cluster, and what they wait for.

use crds::etcd_backup::BackupPhase;
use crds::{ObjectExt, Reason};
use jiff::Timestamp;

use super::backup::{content, phase};
use super::cluster::Turn;
use super::decided::Decided;
use super::observed::Observed;
pub(super) use super::problem_kind::Problem;
use super::retention::Removal;
use super::verification;
use crate::message::quote;
use crate::moment::day_and_clock;

/// What is wrong with those of this cluster, which are overdue at that time; none: nothing.
pub(super) fn problem(observed: &Observed<'_>, decided: &Decided<'_>, overdue: Option<Timestamp>) -> Option<Problem> {
    let cluster = &decided.cluster;
    let name = cluster.target.said();
    if let Turn::Excluded(reason, message) = &cluster.turn {
        return Some(Problem { reason: *reason, message: message.clone() });
    }
    let last_ended = cluster.backups.iter().rev().find(|backup| match phase(backup) {
        BackupPhase::Succeeded | BackupPhase::Failed => true,
        BackupPhase::Pending | BackupPhase::Running => false,
    });
    let failed = last_ended.filter(|backup| phase(backup) == BackupPhase::Failed).map(|backup| {
        let said = backup.status.as_ref().and_then(|status| status.message.as_deref()).unwrap_or("it has failed");
        format!("EtcdBackup {} of {name}: {said}", backup.name())
    });
    if overdue.is_some_and(|overdue| overdue <= observed.now) {
        let since = cluster.good().first().and_then(|backup| content(backup)).map(|good| good.completed_at.0);
        let since = since.map(day_and_clock).unwrap_or_default();
        let why = failed.or_else(|| waits(observed, decided)).map(|why| format!(": {why}")).unwrap_or_default();
        let message = format!("{name} has no good backup since {since}{why}");
        return Some(Problem { reason: Reason::BackupOverdue, message });
    }
    if let Some(message) = failed {
        return Some(Problem { reason: Reason::LastBackupFailed, message });
    }
    if let Some(problem) = verification::problem(cluster) {
        return Some(problem);
    }
    match (&cluster.turn, &decided.removal) {
        (Turn::Missed(tick), _) => {
            let at = day_and_clock(*tick);
            let message = format!("the backup of {name} of {at} did not begin in time, and was left out");
            Some(Problem { reason: Reason::BackupMissed, message })
        }
        (_, Removal::Held(why)) => Some(Problem { reason: Reason::BackupShrank, message: format!("{name}: {why}") }),
        _ => None,
    }
}

/// What a cluster waits for that is as it should be.
pub(super) fn waits(observed: &Observed<'_>, decided: &Decided<'_>) -> Option<String> {
    match &decided.cluster.turn {
        // How much is stored changes all the time: the EtcdBackup says so.
        Turn::UnderWay(backup) if phase(backup) == BackupPhase::Running => {
            Some(format!("EtcdBackup {} is being taken", backup.name()))
        }
        Turn::UnderWay(backup) => {
            let said = backup.status.as_ref().and_then(|status| status.message.as_deref()).unwrap_or("it begins");
            Some(quote(format!("EtcdBackup {}: {said}", backup.name())))
        }
        Turn::Due { since, .. } if decided.begins.is_none() => {
            let why = match observed.schedule.spec.suspend {
                true => "spec.suspend is true",
                false => "waits until fewer clusters are backed up",
            };
            Some(format!("due since {}: {why}", day_and_clock(*since)))
        }
        Turn::Due { .. } | Turn::Excluded(..) | Turn::Missed(_) | Turn::Idle => None,
    }
}
