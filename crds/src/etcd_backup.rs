//! EtcdBackup: one backup of a cluster's etcd, and of what the cluster needs beside it to live elsewhere.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::KubernetesVersion;
use crate::references::LocalRef;

/// One backup.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "clusterwright.dev",
    version = "v1alpha1",
    kind = "EtcdBackup",
    plural = "etcdbackups",
    shortname = "eb",
    category = "clusterwright",
    namespaced,
    status = "EtcdBackupStatus",
    derive = "PartialEq",
    doc = "One backup of a cluster's etcd, and of what the cluster needs beside it to live elsewhere.",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterName"),
    printcolumn(name = "Storage", type_ = "string", json_path = ".spec.storageRef.name"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Revision", type_ = "integer", json_path = ".status.backup.revision"),
    printcolumn(name = "Size", type_ = "integer", json_path = ".status.backup.size"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 50")
        .message("metadata.name: an RFC 1123 label of at most 50 characters: its runs are named after it"),
    selectable = ".spec.clusterName"
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self == oldSelf").message("Forbidden: an EtcdBackup is immutable; make a new one"))]
pub struct EtcdBackupSpec {
    /// The ClusterDeployment whose etcd is backed up.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub cluster_name: String,
    /// The BackupStorage that it goes to.
    pub storage_ref: LocalRef,
    /// Whom it is encrypted for: it holds every Secret of the cluster, and its keys.
    pub encryption: BackupEncryption,
    /// The most that is read from a member in a second, in bytes, 65536 to 10737418240. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 65536, max = 10_737_418_240_i64))]
    pub bytes_per_second: Option<i64>,
    /// Deadline of one attempt in seconds, 300 to 86400. Default 3600. While a snapshot is read, the member's database
    /// keeps the pages that it is made of, and grows.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 300, max = 86400))]
    pub timeout_seconds: i32,
    /// What becomes of what it has stored when the EtcdBackup is deleted. Default `Retain`.
    #[serde(default)]
    pub deletion_policy: BackupDeletionPolicy,
    /// How long the EtcdBackup stays after it has ended, well or not, in seconds, 0 to 1576800000; then it is deleted,
    /// as `deletionPolicy` says, and later where an EtcdRestore that has not ended is of it. Default: it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_576_800_000))]
    pub ttl_seconds: Option<i32>,
}

/// What becomes of a stored backup when its EtcdBackup is deleted.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum BackupDeletionPolicy {
    /// It stays in the storage.
    #[default]
    Retain,
    /// It is removed from the storage; the EtcdBackup is there until it is.
    Delete,
}

/// Whom a backup is encrypted for.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupEncryption {
    /// age recipients, `age1...`: public keys, as `age-keygen` prints them. Any of their identities decrypts it, and
    /// nothing else does: keep them outside of the cluster and of its metadata cluster.
    #[schemars(length(min = 1, max = 8), inner(length(min = 62, max = 62), regex(pattern = r"^age1[a-z0-9]{58}$")))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub recipients: Vec<String>,
}

fn default_timeout() -> i32 {
    3600
}

/// Where a backup is.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum BackupPhase {
    /// It waits to be taken.
    Pending,
    /// It is being taken.
    Running,
    /// It is in the storage, whole, and was read back.
    Succeeded,
    /// It was given up; nothing of it counts as a backup.
    Failed,
}

/// What a backup holds, or why it is not there.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdBackupStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<BackupPhase>,
    /// One sentence: what it is doing, waits for, or what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// The PlaybookRun of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_ref: Option<LocalRef>,
    /// Bytes of the snapshot that have been stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<i64>,
    /// What it holds, once it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupContent>,
    /// When it was last tried in vain to remove it from the storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal_tried_at: Option<Time>,
    /// As a Job has them: `Complete` is True once the backup is there, `Failed` once it was given up. `Reconciling`
    /// until it has ended, `Stalled` once it has without success. `Deleting` while what it has stored is removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// What a backup holds. A run's status has the same, in `backup`.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupContent {
    /// Its directory in the storage, below the prefix.
    #[schemars(length(max = 512))]
    pub location: String,
    /// Every write up to this revision is in it.
    pub revision: i64,
    /// Keys at that revision.
    pub keys: i64,
    /// Bytes of the snapshot.
    pub size: i64,
    /// SHA-256 of the snapshot, hexadecimal.
    #[schemars(length(max = 64))]
    pub sha256: String,
    /// The Host whose member was read.
    #[schemars(length(max = 63))]
    pub member: String,
    /// etcd's version.
    #[schemars(length(max = 64))]
    pub etcd_version: String,
    /// The version of Kubernetes that the cluster ran, if it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<KubernetesVersion>,
    /// When the snapshot was begun.
    pub started_at: Time,
    /// When it was stored and read back.
    pub completed_at: Time,
}
