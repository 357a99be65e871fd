//! Whether a backup is needed yet.

use crds::etcd_restore::RestoreSource;
use crds::{ClusterDeployment, EtcdBackup, EtcdRestore, ObjectExt};

use crate::cluster_deployment::restoring::restored_from;
use crate::etcd_restore::is_over;

/// Who needs it, `EtcdRestore back`: a restore of it that has not ended, or a cluster that begins with it and does not
/// stand yet.
pub fn needed_by(backup: &EtcdBackup, restores: &[&EtcdRestore], deployments: &[&ClusterDeployment]) -> Option<String> {
    let mut restores = restores.iter().filter(|restore| !is_over(restore) && is_of(&restore.spec.source, backup));
    let restore = restores.next().map(|restore| format!("EtcdRestore {}", restore.name()));
    restore.or_else(|| {
        let mut deployments = deployments.iter().filter(|deployment| begins_with(deployment, backup));
        deployments.next().map(|deployment| format!("ClusterDeployment {}", deployment.name()))
    })
}

/// Whether the backup is meant: by its name, or by its place in the storage.
fn is_of(source: &RestoreSource, backup: &EtcdBackup) -> bool {
    let by_name = source.backup_ref.as_ref().is_some_and(|reference| reference.name == backup.name());
    let content = backup.status.as_ref().and_then(|status| status.backup.as_ref());
    let by_place = source.stored.as_ref().zip(content).is_some_and(|(stored, content)| {
        stored.storage_ref == backup.spec.storage_ref && stored.location == content.location
    });
    by_name || by_place
}

/// Whether it is what the cluster is to begin with: asked for, or settled on.
fn begins_with(deployment: &ClusterDeployment, backup: &EtcdBackup) -> bool {
    let status = deployment.status.as_ref();
    let settled = restored_from(deployment);
    let stands = status.is_some_and(|status| status.installed_at.is_some());
    if stands || deployment.is_deleting() || settled.is_some_and(|settled| settled.restored_at.is_some()) {
        return false;
    }
    let content = backup.status.as_ref().and_then(|status| status.backup.as_ref());
    let by_place = settled.zip(content).is_some_and(|(settled, content)| {
        settled.storage_ref == backup.spec.storage_ref && settled.location == content.location
    });
    by_place || deployment.spec.restore_from.as_ref().is_some_and(|from| is_of(&from.source, backup))
}
