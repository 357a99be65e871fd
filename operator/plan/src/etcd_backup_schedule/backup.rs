//! The EtcdBackups of a schedule: what is read of one, and how one is made.

use std::collections::BTreeMap;

use crds::etcd_backup::{BackupContent, BackupPhase, EtcdBackupSpec, Verify};
use crds::names::{annotation, label};
use crds::references::LocalRef;
use crds::{EtcdBackup, EtcdBackupSchedule, ObjectExt};
use jiff::Timestamp;

use super::target::Target;
use crate::naming::short_hash;

/// Where it is; one that no controller has seen yet is pending.
pub(super) fn phase(backup: &EtcdBackup) -> BackupPhase {
    backup.status.as_ref().and_then(|status| status.phase).unwrap_or(BackupPhase::Pending)
}

/// What it holds, if it is good.
pub(super) fn content(backup: &EtcdBackup) -> Option<&BackupContent> {
    backup.good()
}

/// Whether it is there and no good: it was given up, or found damaged.
pub(super) fn is_bad(backup: &EtcdBackup) -> bool {
    phase(backup) == BackupPhase::Failed || is_damaged(backup)
}

/// Whether a verification found that it is not what was stored.
pub(super) fn is_damaged(backup: &EtcdBackup) -> bool {
    backup.status.as_ref().is_some_and(|status| status.damaged.is_some())
}

/// When it was due; else when it was made.
pub(super) fn scheduled_at(backup: &EtcdBackup) -> Timestamp {
    let written = backup.annotation(annotation::SCHEDULED_AT).and_then(|text| text.parse().ok());
    let made = || backup.created_at().map(|time| time.0);
    written.or_else(made).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Those that stay, by the UID of their cluster: one that has the name of another is not that one.
pub(super) fn by_cluster<'a>(backups: &[&'a EtcdBackup]) -> BTreeMap<&'a str, Vec<&'a EtcdBackup>> {
    let mut found: BTreeMap<&str, Vec<&EtcdBackup>> = BTreeMap::new();
    for backup in backups.iter().filter(|backup| !backup.is_deleting()) {
        if let Some(uid) = backup.annotation(annotation::CLUSTER_UID) {
            found.entry(uid).or_default().push(backup);
        }
    }
    found
}

/// The backup that is due at a time: everyone who sees the same makes the same. No object owns it: it
/// would be deleted with its owner, and what it holds is needed most when something was deleted by mistake.
pub(super) fn make(
    schedule: &EtcdBackupSchedule,
    target: Target<'_>,
    due: Timestamp,
    verify: Option<Verify>,
) -> EtcdBackup {
    let template = &schedule.spec.template;
    let name = target.name().to_owned();
    let (cluster_name, plane, of) = match target {
        Target::Cluster(_) => (Some(name.clone()), None, Some((label::CLUSTER.into(), name))),
        Target::Plane(_) => (None, Some(LocalRef::new(&name)), Some((label::KARMADA.into(), name))),
        Target::Etcd => (None, None, None),
    };
    let labels = [of, Some((label::SCHEDULE.into(), schedule.name().to_owned()))];
    let spec = EtcdBackupSpec {
        cluster_name,
        karmada_deployment_ref: plane,
        etcd: schedule.spec.etcd.clone(),
        storage_ref: template.storage_ref.clone(),
        encryption: template.encryption.clone(),
        bytes_per_second: template.bytes_per_second,
        timeout_seconds: template.timeout_seconds,
        spool: template.spool,
        deletion_policy: template.deletion_policy,
        ttl_seconds: None,
        verify,
    };
    let hash = short_hash(&[schedule.uid(), target.uid(), &due.as_second().to_string()], 6);
    let name = format!("{}-{}-{hash}", schedule.name(), due.strftime("%Y%m%d%H%M"));
    let mut backup = EtcdBackup::new(&name, spec);
    backup.metadata.namespace = schedule.metadata.namespace.clone();
    backup.metadata.labels = Some(labels.into_iter().flatten().collect());
    backup.metadata.annotations = Some(BTreeMap::from([
        (annotation::CLUSTER_UID.into(), target.uid().to_owned()),
        (annotation::SCHEDULED_AT.into(), due.to_string()),
    ]));
    backup
}
