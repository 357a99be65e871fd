//! What a run knows of the storage and of the backup that it takes. Secrets are files beside it.

use serde::{Deserialize, Serialize};

use super::manifest::PlaneManifest;
use crate::backup_storage::ServerSideEncryption;

/// Where a Pod finds the volume of a storage.
pub const MOUNT_PATH: &str = "/backups";

/// Keys of the Secret with the credentials of an S3 storage. In a run's Secret they are files with the prefix
/// `storage.`; the last one may be missing.
pub const STORAGE_SECRETS: [&str; 3] = ["accessKeyID", "secretAccessKey", "sessionToken"];

/// What the files of [`STORAGE_SECRETS`] begin with in a run's Secret.
pub const STORAGE_PREFIX: &str = "storage.";
/// What those files of a run's Secret begin with that a backup takes along: each is in its bundle, without the prefix.
pub const BUNDLE_PREFIX: &str = "bundle.";
/// Files of a run's Secret by which etcd is read: its authority, and a client's certificate and key, all PEM.
pub const ETCD_SECRETS: [&str; 3] = ["pki.etcd-ca.crt", "etcd.backup-client.crt", "etcd.backup-client.key"];

/// File of a run's Secret with the kubeconfig by which ports of Pods with members of etcd are forwarded.
pub const HOST_KUBECONFIG_SECRET: &str = "etcd.host-kubeconfig";

/// File of a run's Secret with the age identity that decrypts the backup that is staged.
pub const IDENTITY_SECRET: &str = "restore.identity";
/// Entry of the Secret of fetched keys, and file beside a plane's etcd that is restored, with the key of the snapshot
/// of one backup: 16 bytes. It reads that snapshot and nothing else.
pub const SNAPSHOT_KEY: &str = "snapshot.key";
/// File of a run's Secret with the data of the Secret `<cluster>-pki` as it is today, as JSON: names to base64, as in a
/// Secret's `data`. A backup with other keys is not restored in place.
pub const PKI_SECRET: &str = "restore.pki.json";

/// A storage of backups.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum StorageInputs {
    /// An S3 bucket.
    S3(S3Inputs),
    /// A directory of a volume that is mounted: its absolute path.
    Directory(String),
}

/// An S3 bucket.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct S3Inputs {
    /// Its URL, `http` or `https`.
    pub endpoint: String,
    /// The bucket's name.
    pub bucket: String,
    /// Keys begin with it; no slash at its ends. Empty: none.
    #[serde(default)]
    pub prefix: String,
    /// The region that requests are signed for.
    pub region: String,
    /// The bucket stands in the path of requests, not in the name of the host.
    pub path_style: bool,
    /// PEM of the authorities that its certificate may come from. None: those of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorities: Option<String>,
    /// How the server encrypts objects. None: as the bucket says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_side_encryption: Option<ServerSideEncryption>,
}

/// What is asked of a run that takes a backup.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BackupInputs {
    /// Where it is kept.
    pub storage: StorageInputs,
    /// The PersistentVolumeClaim that is mounted at [`MOUNT_PATH`]. None: the storage is no volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_claim: Option<String>,
    /// Its directory in the storage, below the prefix: no other attempt has the same.
    pub location: String,
    /// The age recipients that it is encrypted for, `age1...`.
    pub recipients: Vec<String>,
    /// The most that is read from a member in a second, in bytes. None: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
    /// The etcd that is read over its endpoints, without a machine. None: a member on one of the run's Hosts is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdInputs>,
    /// The member's machine writes the snapshot to its disk first, and sends it from there.
    #[serde(default)]
    pub spool: bool,
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
    /// The version of Kubernetes that the cluster, or the plane's API server, runs, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<crate::KubernetesVersion>,
}

/// An etcd that is read over its endpoints.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EtcdInputs {
    /// Client URLs of its members, `https://HOST:PORT`.
    pub endpoints: Vec<String>,
    /// Below which keys there must be some, and those are counted. None: all keys are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The namespace of the Pods of its members, where those are reached by a port alone that the API of their cluster
    /// forwards: by the kubeconfig in [`HOST_KUBECONFIG_SECRET`]. The host of each endpoint begins with the name of its
    /// Pod then. None: the endpoints are connected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded_in: Option<String>,
}

/// What is asked of a run that brings a backup to the machines.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StagingInputs {
    /// Where the backup is kept.
    pub storage: StorageInputs,
    /// The PersistentVolumeClaim that is mounted at [`MOUNT_PATH`]. None: the storage is no volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_claim: Option<String>,
    /// The backup's directory in the storage, below the prefix.
    pub location: String,
    /// Names the directories of this restore on the machines: 8 characters, `[a-z0-9]`. The variable
    /// `etcd_restore.id` has the same.
    pub id: String,
    /// Name of the EtcdRestore, or of what begins with the backup.
    pub restore: String,
    /// Name of the cluster that was backed up: the backup must be of a cluster of this name. Empty for a plane.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// The plane that was backed up: the backup must be of this very one. None: it is of a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub karmada_deployment: Option<PlaneManifest>,
    /// Name of the Secret whose data is [`PKI_SECRET`]: the backup must have these keys.
    #[serde(default)]
    pub keys: String,
    /// The version of Kubernetes that the cluster runs, or will, if it is known: the backup must be of the same minor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<crate::KubernetesVersion>,
}
