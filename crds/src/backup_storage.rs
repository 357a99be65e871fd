//! BackupStorage: where backups of etcd are kept.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::references::LocalRef;

/// An S3 bucket or a volume.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "clusterwright.dev",
    version = "v1alpha1",
    kind = "BackupStorage",
    plural = "backupstorages",
    shortname = "bs",
    category = "clusterwright",
    namespaced,
    status = "BackupStorageStatus",
    derive = "PartialEq",
    doc = "Where backups of etcd are kept: an S3 bucket, or a volume.",
    printcolumn(
        name = "Reachable",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Reachable')].status"
    ),
    printcolumn(name = "Backups", type_ = "integer", json_path = ".status.backups"),
    printcolumn(name = "Newest", type_ = "date", json_path = ".status.newest.completedAt"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 40")
        .message("metadata.name: an RFC 1123 label of at most 40 characters")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.s3) != has(self.volume)").message("exactly one of s3 and volume is required"))]
pub struct BackupStorageSpec {
    /// An S3 bucket, of AWS or of any server that speaks its protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3>,
    /// A volume: NFS, CephFS, or what a CSI driver provides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<Volume>,
}

/// An S3 bucket.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct S3 {
    /// URL of the server, `https://s3.example.com:9000`. `http` is for servers that no certificate can be had for: what
    /// is stored is encrypted, the names of clusters and the sizes are not.
    #[schemars(length(min = 8, max = 512), regex(pattern = r"^https?://[^/?#@\s]+$"))]
    pub endpoint: String,
    /// The bucket; it must be there.
    #[schemars(length(min = 3, max = 63), regex(pattern = r"^[a-z0-9][-.a-z0-9]*[a-z0-9]$"))]
    pub bucket: String,
    /// Every key begins with it: `clusterwright/paris`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256), regex(pattern = r"^[A-Za-z0-9_=.-]+(/[A-Za-z0-9_=.-]+)*$"))]
    #[x_kube(validation = Rule::new("self.split('/').all(p, p != '.' && p != '..')").message("no part of it may be . or .."))]
    pub prefix: Option<String>,
    /// The region that requests are signed for. Default `us-east-1`.
    #[serde(default = "default_region")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9-]+$"))]
    pub region: String,
    /// The bucket stands in the path of requests, not in the name of the host. Default true.
    #[serde(default = "default_path_style")]
    pub path_style: bool,
    /// The Secret with `accessKeyID`, `secretAccessKey` and, where there is one, `sessionToken`. They need the rights
    /// to list the bucket, and to read, write and delete objects below `prefix`.
    pub credentials_ref: LocalRef,
    /// The ConfigMap with `ca.crt`: authorities that the server's certificate may come from, PEM. Default: those that
    /// the executor's image knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_ref: Option<LocalRef>,
    /// How the server encrypts objects, beside the encryption of ours that every backup has. Default: as the bucket
    /// says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_side_encryption: Option<ServerSideEncryption>,
}

/// How an S3 server encrypts objects.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.algorithm == 'KMS' || !has(self.kmsKeyID)").message("kmsKeyID is for the algorithm KMS"))]
pub struct ServerSideEncryption {
    /// With whose key.
    pub algorithm: ServerSideAlgorithm,
    /// The key's ID or ARN. Default: the bucket's.
    #[serde(default, rename = "kmsKeyID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048), regex(pattern = r"^[!-~]+$"))]
    pub kms_key_id: Option<String>,
}

/// With whose key an S3 server encrypts.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum ServerSideAlgorithm {
    /// The server's own: `AES256`.
    AES256,
    /// One of its key management service: `aws:kms`.
    KMS,
}

/// A volume.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// The PersistentVolumeClaim. `ReadWriteMany`, unless everything that uses it runs on one node.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub claim_name: String,
    /// A directory of it: `etcd/paris`. Default: its root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256), regex(pattern = r"^[A-Za-z0-9_=.-]+(/[A-Za-z0-9_=.-]+)*$"))]
    #[x_kube(validation = Rule::new("self.split('/').all(p, p != '.' && p != '..')").message("no part of it may be . or .."))]
    pub path: Option<String>,
}

fn default_region() -> String {
    "us-east-1".into()
}

fn default_path_style() -> bool {
    true
}

/// What the storage is like.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupStorageStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One sentence: what is in it, or why it cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// When it was last asked: an object was written, read, listed and deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed_at: Option<Time>,
    /// Backups in it, of all clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backups: Option<i64>,
    /// Bytes of their objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Bytes that are free. Absent: it cannot be known, as of an S3 bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<i64>,
    /// The backup that was completed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<NewestBackup>,
    /// `Reachable`: an object could be written, read, listed and deleted when it was last asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The newest backup of a storage.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewestBackup {
    /// Its directory, below the prefix.
    #[schemars(length(max = 512))]
    pub location: String,
    /// When it was completed.
    pub completed_at: Time,
}
