//! The backup that a restore is set back to: where it is, and whether it is there.

use crds::etcd_backup::BackupPhase;
use crds::names::condition;
use crds::{Conditions, EtcdBackup, EtcdRestore, ObjectExt, Reason};

use super::observed::Observed;
use super::state::State;

/// Name of the BackupStorage that the source is in; none where its EtcdBackup is not there.
pub fn storage_of<'a>(restore: &'a EtcdRestore, backup: Option<&'a EtcdBackup>) -> Option<&'a str> {
    let stored = restore.spec.source.stored.as_ref().map(|stored| &stored.storage_ref);
    stored.or(backup.map(|backup| &backup.spec.storage_ref)).map(|storage| storage.name.as_str())
}

/// Why the backup cannot be had.
pub(super) fn blocker<'a>(observed: &Observed<'a>) -> Option<State<'a>> {
    if let Some(reference) = &observed.restore.spec.source.backup_ref {
        let name = &reference.name;
        let Some(backup) = observed.backup else {
            let message = format!("EtcdBackup {name} is not there: make a new EtcdRestore that names another one");
            return Some(State::Waits(Reason::BackupNotFound, message));
        };
        if let Some(blocked) = unusable(observed, backup) {
            return Some(blocked);
        }
    }
    let name = storage_of(observed.restore, observed.backup)?;
    let Some(storage) = observed.storage else {
        return Some(State::Waits(Reason::StorageNotFound, format!("BackupStorage {name} is not there: make it")));
    };
    let Some(reachable) = storage.condition(condition::REACHABLE) else {
        return Some(State::Waits(Reason::StorageNotProbed, format!("BackupStorage {name} is being probed")));
    };
    let message = format!("BackupStorage {name} cannot be used: {}", reachable.message);
    (reachable.status != "True").then_some(State::Waits(Reason::StorageUnreachable, message))
}

fn unusable<'a>(observed: &Observed<'a>, backup: &EtcdBackup) -> Option<State<'a>> {
    let (name, cluster) = (backup.name(), &observed.restore.spec.cluster_name);
    if &backup.spec.cluster_name != cluster {
        let message = format!(
            "EtcdBackup {name} is of cluster {}, and this restores cluster {cluster}: make a new EtcdRestore",
            backup.spec.cluster_name
        );
        return Some(State::GivenUp(Reason::BackupOfOtherCluster.into(), message));
    }
    match backup.status.as_ref().and_then(|status| status.phase) {
        Some(BackupPhase::Succeeded) => None,
        Some(BackupPhase::Failed) => {
            let message = format!("EtcdBackup {name} has failed: make a new EtcdRestore that names another one");
            Some(State::GivenUp(Reason::BackupNotFound.into(), message))
        }
        Some(BackupPhase::Pending | BackupPhase::Running) | None => {
            Some(State::Waits(Reason::BackupNotComplete, format!("EtcdBackup {name} is still being taken")))
        }
    }
}
