//! The backup of what is there, taken once a restore is approved and before the control plane is stopped: so that the
//! time without an API is no longer. Nobody owns it: it stays when the restore goes.

use std::collections::BTreeMap;

use crds::etcd_backup::{BackupDeletionPolicy, BackupEncryption, BackupPhase, EtcdBackupSpec};
use crds::names::{annotation, label};
use crds::references::LocalRef;
use crds::{BackupStorage, EtcdBackup, EtcdRestore, ObjectExt};

use super::names::safety_name;
use super::observed::Observed;
use crate::backup_storage::usable;
use crate::message::quote;

/// How it stands with the backup of what is there.
pub(super) enum Safety<'a> {
    /// It is asked for now.
    Begins(Box<EtcdBackup>),
    /// It goes on.
    UnderWay(&'a EtcdBackup),
    /// It is there.
    Taken(&'a EtcdBackup),
    /// There is none, and why; none: none is wanted.
    Missing(Option<String>),
}

/// Where it goes, and whom it is encrypted for; none: none is taken. `backup`: the one of `source.backupRef`.
pub fn safety_wanted(restore: &EtcdRestore, backup: Option<&EtcdBackup>) -> Option<(LocalRef, BackupEncryption)> {
    match &restore.spec.safety_backup {
        Some(safety) => safety.storage_ref.clone().zip(safety.encryption.clone()).filter(|_| !safety.skip),
        None => {
            let source = backup.filter(|_| restore.spec.source.backup_ref.is_some())?;
            Some((source.spec.storage_ref.clone(), source.spec.encryption.clone()))
        }
    }
}

/// Whether it was made before this very restore.
pub(super) fn is_before(backup: &EtcdBackup, restore: &EtcdRestore) -> bool {
    backup.annotation(annotation::RESTORE_UID) == Some(restore.uid())
}

/// How it stands.
pub(super) fn safety<'a>(observed: &Observed<'a>) -> Safety<'a> {
    let wanted = safety_wanted(observed.restore, observed.backup);
    let Some(backup) = observed.safety else {
        return match wanted {
            None => Safety::Missing(None),
            Some((storage, encryption)) => match unusable(&storage.name, observed.safety_storage) {
                Some(problem) => Safety::Missing(Some(problem)),
                None => Safety::Begins(Box::new(make(observed.restore, storage, encryption))),
            },
        };
    };
    let name = backup.name();
    if !is_before(backup, observed.restore) {
        let problem = format!("an EtcdBackup {name} that was made for something else is there");
        return Safety::Missing(Some(problem));
    }
    let status = backup.status.as_ref();
    match status.and_then(|status| status.phase) {
        Some(BackupPhase::Succeeded) => Safety::Taken(backup),
        Some(BackupPhase::Failed) => {
            let said = status.and_then(|status| status.message.clone()).unwrap_or_else(|| "it failed".into());
            Safety::Missing(Some(format!("EtcdBackup {name}: {}", quote(said))))
        }
        // One that has no run yet does not begin once the restore has.
        Some(BackupPhase::Pending) if status.is_some_and(|status| status.run_ref.is_none()) => {
            match unusable(&backup.spec.storage_ref.name, observed.safety_storage) {
                Some(problem) => Safety::Missing(Some(problem)),
                None => Safety::UnderWay(backup),
            }
        }
        Some(BackupPhase::Pending | BackupPhase::Running) | None => Safety::UnderWay(backup),
    }
}

/// The EtcdBackup that is to be made, unless it is there, and how far it is; none: it is waited for no more.
pub(super) fn backing_up(observed: &Observed<'_>) -> Option<(Option<Box<EtcdBackup>>, String)> {
    match safety(observed) {
        Safety::Begins(backup) => {
            let message = format!("EtcdBackup {} of what is there begins", backup.name());
            Some((Some(backup), message))
        }
        Safety::UnderWay(backup) => {
            let said = backup.status.as_ref().and_then(|status| status.message.clone());
            let said = quote(said.unwrap_or_else(|| "it begins".into()));
            Some((None, format!("EtcdBackup {} of what is there: {said}", backup.name())))
        }
        Safety::Taken(_) | Safety::Missing(_) => None,
    }
}

/// What to say of it where the restore is to be approved; none: nothing.
pub(super) fn announced(observed: &Observed<'_>) -> Option<String> {
    match safety(observed) {
        Safety::Begins(backup) => {
            let (name, storage) = (backup.name(), &backup.spec.storage_ref.name);
            Some(format!("first, EtcdBackup {name} is made of what is there, in BackupStorage {storage}"))
        }
        Safety::UnderWay(backup) | Safety::Taken(backup) => {
            Some(format!("what is there is in EtcdBackup {}", backup.name()))
        }
        Safety::Missing(why) => why.map(|why| format!("no backup is made of what is there: {why}")),
    }
}

/// Why nothing can be stored there.
fn unusable(name: &str, storage: Option<&BackupStorage>) -> Option<String> {
    usable(name, storage).err().map(|unusable| quote(unusable.message))
}

fn make(restore: &EtcdRestore, storage_ref: LocalRef, encryption: BackupEncryption) -> EtcdBackup {
    let spec = EtcdBackupSpec {
        cluster_name: restore.spec.cluster_name.clone(),
        karmada_deployment_ref: restore.spec.karmada_deployment_ref.clone(),
        etcd: None,
        storage_ref,
        encryption,
        bytes_per_second: None,
        timeout_seconds: restore.spec.timeout_seconds,
        spool: false,
        deletion_policy: BackupDeletionPolicy::Retain,
        ttl_seconds: None,
        verify: None,
    };
    let mut backup = EtcdBackup::new(&safety_name(restore), spec);
    backup.metadata.namespace = restore.metadata.namespace.clone();
    let of_cluster = restore.spec.cluster_name.clone().map(|name| (label::CLUSTER.to_owned(), name));
    let of_restore = (label::RESTORE.to_owned(), restore.name().to_owned());
    backup.metadata.labels = Some(of_cluster.into_iter().chain([of_restore]).collect());
    backup.metadata.annotations = Some(BTreeMap::from([(annotation::RESTORE_UID.into(), restore.uid().to_owned())]));
    backup
}
