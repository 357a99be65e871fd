//! The manifest of a backup: what makes its objects a backup. It is written last, and holds nothing secret.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Version of the layout.
pub const FORMAT: &str = "clusterwright.dev/etcd-backup/v1";
/// Name of the manifest in a backup's directory.
pub const MANIFEST_FILE: &str = "manifest.json";
/// Name of the snapshot: etcd's, encrypted with age.
pub const SNAPSHOT_FILE: &str = "snapshot.db.age";
/// Name of what a cluster needs beside it to live elsewhere: a tar archive, encrypted with age.
pub const BUNDLE_FILE: &str = "cluster.tar.age";

/// An object of a backup.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ObjectManifest {
    /// Its name in the backup's directory.
    pub name: String,
    /// Its size in bytes, as it is stored.
    pub size: u64,
    /// SHA-256 of it as it is stored, hexadecimal.
    pub sha256: String,
    /// Its size in bytes, decrypted.
    pub plain_size: u64,
    /// SHA-256 of it decrypted, hexadecimal.
    pub plain_sha256: String,
}

/// The plane that was backed up.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlaneManifest {
    /// Name of the KarmadaDeployment.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// The version of Karmada that all its components had last; none: they never had one yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<crate::ComponentVersion>,
}

/// What a backup is.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BackupManifest {
    /// Version of the layout: [`FORMAT`].
    pub format: String,
    /// Name of the EtcdBackup.
    pub backup: String,
    /// Name of the cluster; empty for a plane, and for an etcd without a cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// UID of its ClusterDeployment; empty for an etcd without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster_uid: String,
    /// The plane whose etcd it is; none: it is no plane's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub karmada_deployment: Option<PlaneManifest>,
    /// ID of etcd's cluster, hexadecimal.
    #[serde(rename = "etcdClusterID")]
    pub etcd_cluster_id: String,
    /// The Host whose member was read, or `HOST:PORT` of its endpoint.
    pub member: String,
    /// Every write up to this revision is in the snapshot: it was read from the member, linearizably, just before.
    pub revision: i64,
    /// Keys at that revision.
    pub keys: i64,
    /// etcd's version.
    pub etcd_version: String,
    /// The version of Kubernetes that the cluster, or the plane's API server, ran, if it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<crate::KubernetesVersion>,
    /// When the snapshot was begun.
    pub started_at: Time,
    /// When everything was stored and read back.
    pub completed_at: Time,
    /// The snapshot.
    pub snapshot: ObjectManifest,
    /// The rest.
    pub bundle: ObjectManifest,
}

/// A manifest that is none of ours.
#[derive(Debug, Error)]
pub enum InvalidManifest {
    /// No JSON of a manifest.
    #[error("it is no manifest: {0}")]
    Json(#[from] serde_json::Error),
    /// Another layout.
    #[error("its format is {0:?}: this version of Clusterwright reads {FORMAT:?}")]
    Format(String),
}

impl BackupManifest {
    /// Reads a manifest: of this layout only.
    pub fn parse(text: &[u8]) -> Result<Self, InvalidManifest> {
        #[derive(Deserialize)]
        struct Header {
            format: String,
        }
        let Header { format } = serde_json::from_slice(text)?;
        if format != FORMAT {
            return Err(InvalidManifest::Format(format));
        }
        Ok(serde_json::from_slice(text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::{BackupManifest, InvalidManifest};

    #[test]
    fn a_manifest_of_another_layout_is_refused_by_its_name() {
        let refused = BackupManifest::parse(br#"{"format": "clusterwright.dev/etcd-backup/v9", "new": true}"#);
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("etcd-backup/v9") && text.contains("etcd-backup/v1"), "{text}");
        for text in [&b""[..], b"{}", b"null", b"{\"format\": 1}"] {
            assert!(matches!(BackupManifest::parse(text), Err(InvalidManifest::Json(_))));
        }
    }
}
