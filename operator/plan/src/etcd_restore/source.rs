//! The backup that a restore is set back to: where it is, and whether it is there.

use crds::etcd_backup::BackupPhase;
use crds::names::condition;
use crds::{Conditions, EtcdBackup, EtcdRestore, ObjectExt, Reason};

use super::observed::Observed;
use super::state::State;
use crate::backup_storage::usable;
use crate::message::quote;

/// Name of the BackupStorage that the source is in; none where its EtcdBackup is not there.
pub fn storage_of<'a>(restore: &'a EtcdRestore, backup: Option<&'a EtcdBackup>) -> Option<&'a str> {
    restore.spec.source.storage(backup).map(|storage| storage.name.as_str())
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
    let unusable = usable(name, observed.storage).err()?;
    Some(State::Waits(unusable.reason, unusable.message))
}

fn unusable<'a>(observed: &Observed<'a>, backup: &EtcdBackup) -> Option<State<'a>> {
    let (name, spec) = (backup.name(), &observed.restore.spec);
    let of_backup = (&backup.spec.cluster_name, &backup.spec.karmada_deployment_ref);
    if of_backup != (&spec.cluster_name, &spec.karmada_deployment_ref) {
        let message = format!(
            "EtcdBackup {name} is of {}, and this restores {}: make a new EtcdRestore",
            backup.spec.subject(),
            spec.subject()
        );
        return Some(State::GivenUp(Reason::BackupOfOtherCluster.into(), message));
    }
    match backup.status.as_ref().and_then(|status| status.phase) {
        Some(BackupPhase::Succeeded) => damaged(backup),
        Some(BackupPhase::Failed) => {
            let message = format!("EtcdBackup {name} has failed: make a new EtcdRestore that names another one");
            Some(State::GivenUp(Reason::BackupNotFound.into(), message))
        }
        Some(BackupPhase::Pending | BackupPhase::Running) | None => {
            Some(State::Waits(Reason::BackupNotComplete, format!("EtcdBackup {name} is still being taken")))
        }
    }
}

/// One that a verification has found damaged is restored only where somebody says where it is.
fn damaged<'a>(backup: &EtcdBackup) -> Option<State<'a>> {
    backup.status.as_ref()?.damaged.as_ref()?;
    let found = backup.condition(condition::VERIFIED).map(|found| quote(found.message.clone())).unwrap_or_default();
    let message = format!(
        "EtcdBackup {} is not what was stored: {found}; make a new EtcdRestore that names another one, or that names \
         this one by source.stored",
        backup.name()
    );
    Some(State::GivenUp(Reason::BackupCorrupt.into(), message))
}
