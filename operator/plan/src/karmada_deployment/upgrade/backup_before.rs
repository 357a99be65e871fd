//! The backup that precedes an upgrade: once its controllers have run in a new minor version, it is the only way back.

use crds::karmada_deployment::UpgradeCheck;
use crds::names::annotation;
use crds::{EtcdBackup, EtcdBackupSchedule, KarmadaDeployment, ObjectExt, Reason};

use super::super::observed::Observed;
use super::state::Upgrade;
use crate::addon::Problem;
use crate::etcd_backup_schedule::plane_backup_between;
use crate::recent_backup::{RecentBackup, recent_backup};

/// Why the upgrade does not begin yet, and the backup that is to be made; none: it may begin.
pub(super) fn find(observed: &Observed<'_>, upgrade: &Upgrade) -> Option<(Problem, Option<Box<EtcdBackup>>)> {
    let schedule = schedule(observed).filter(|_| is_bound(upgrade))?;
    let upgrading = |message| Problem { reason: Reason::Upgrading, message };
    let ours = of_plane(observed);
    match recent_backup(observed.now, &ours, |moment| plane_backup_between(schedule, observed.object, moment)) {
        RecentBackup::There => None,
        RecentBackup::UnderWay(what) => Some((upgrading(what), None)),
        RecentBackup::Wanted(wanted) => {
            Some((upgrading(format!("EtcdBackup {} is made before", wanted.name())), Some(wanted)))
        }
        RecentBackup::Failed(why, _) => {
            let message = format!("{why}, or name Backup in spec.upgrade.ignore to go on without");
            Some((Problem { reason: Reason::BackupRequired, message }, None))
        }
    }
}

/// What is said ahead, where an upgrade begins without a backup.
pub(super) fn warning(observed: &Observed<'_>, upgrade: &Upgrade) -> &'static str {
    match schedule(observed) {
        _ if is_ignored(observed.object) => " (no backup of etcd precedes it: spec.upgrade.ignore names it)",
        None => " (no backup of etcd precedes it: no EtcdBackupSchedule is for the plane)",
        Some(_) if upgrade.record.interrupts => " (no backup of etcd precedes it: another upgrade had begun)",
        Some(_) if upgrade.was_never_whole() => " (no backup of etcd precedes it: the plane was never whole)",
        Some(_) => "",
    }
}

/// Before what takes the place of another one a backup was made, whose way back it may be; and a plane that was never
/// whole holds nothing.
fn is_bound(upgrade: &Upgrade) -> bool {
    !upgrade.record.interrupts && !upgrade.was_never_whole()
}

/// The schedule by which it is made; none: none is wanted, or possible.
fn schedule<'a>(observed: &Observed<'a>) -> Option<&'a EtcdBackupSchedule> {
    let is_live = |schedule: &&EtcdBackupSchedule| {
        let is_for = schedule.spec.is_for_plane(observed.object.name());
        is_for && !schedule.spec.suspend && !schedule.is_deleting()
    };
    let schedules = observed.schedules.iter().copied().filter(is_live);
    schedules.min_by_key(|schedule| schedule.name()).filter(|_| !is_ignored(observed.object))
}

fn is_ignored(object: &KarmadaDeployment) -> bool {
    object.spec.upgrade.ignore.contains(&UpgradeCheck::Backup)
}

/// Backups of this very plane: by what a schedule wrote on them, or by where they are stored.
fn of_plane<'a>(observed: &Observed<'a>) -> Vec<&'a EtcdBackup> {
    let uid = observed.object.uid();
    let is_own = |backup: &&EtcdBackup| {
        let content = backup.status.as_ref().and_then(|status| status.backup.as_ref());
        let is_stored_as = || content.is_some_and(|content| content.location.split('/').nth(2) == Some(uid));
        let is_of_plane = backup.spec.karmada_deployment_ref.is_some() && !backup.is_deleting();
        is_of_plane && (backup.annotation(annotation::CLUSTER_UID) == Some(uid) || is_stored_as())
    };
    observed.backups.iter().copied().filter(is_own).collect()
}
