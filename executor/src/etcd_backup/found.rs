//! A backup that was found in a storage.

use crds::KubernetesVersion;
use crds::backup::BackupManifest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;

/// A backup that was found, as an action of Ansible reads it.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FoundBackup {
    pub location: String,
    pub backup: String,
    pub revision: i64,
    pub keys: i64,
    /// Of the snapshot, decrypted.
    pub size: i64,
    pub sha256: String,
    pub etcd_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<KubernetesVersion>,
    pub taken_at: Time,
}

impl FoundBackup {
    /// What a manifest at this location tells.
    pub(super) fn new(manifest: &BackupManifest, location: &str) -> Self {
        Self {
            location: location.to_owned(),
            backup: manifest.backup.clone(),
            revision: manifest.revision,
            keys: manifest.keys,
            size: i64::try_from(manifest.snapshot.plain_size).unwrap_or(i64::MAX),
            sha256: manifest.snapshot.plain_sha256.clone(),
            etcd_version: manifest.etcd_version.clone(),
            kubernetes_version: manifest.kubernetes_version,
            taken_at: manifest.started_at.clone(),
        }
    }
}
