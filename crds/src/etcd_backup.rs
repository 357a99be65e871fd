//! EtcdBackup: one backup of the etcd of a cluster or of a Karmada control plane, and of what that needs beside it to
//! live elsewhere; or of an etcd without a cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster_deployment::ENDPOINTS_RULE;
use crate::references::LocalRef;
use crate::{ComponentVersion, KubernetesVersion};

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
    doc = "One backup of the etcd of a cluster or of a Karmada control plane, and of what that needs beside it to live elsewhere; or of any other etcd.",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterName"),
    printcolumn(name = "Plane", type_ = "string", json_path = ".spec.karmadaDeploymentRef.name", priority = "1"),
    printcolumn(name = "Storage", type_ = "string", json_path = ".spec.storageRef.name"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Revision", type_ = "integer", json_path = ".status.backup.revision"),
    printcolumn(name = "Size", type_ = "integer", json_path = ".status.backup.size"),
    printcolumn(name = "Verified", type_ = "string", json_path = ".status.conditions[?(@.type==\"Verified\")].status"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 50")
        .message("metadata.name: an RFC 1123 label of at most 50 characters: its runs are named after it"),
    selectable = ".spec.clusterName"
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self == oldSelf").message("Forbidden: an EtcdBackup is immutable; make a new one"))]
#[x_kube(validation = Rule::new(TARGET_RULE).message(TARGET_MESSAGE))]
#[x_kube(validation = Rule::new("!has(self.etcd) || !self.spool")
    .message("spool goes with clusterName, and with karmadaDeploymentRef of a plane with mode Binary: an etcd that is read over its endpoints has no machine to write to; leave it out"))]
#[x_kube(validation = Rule::new(RESTORABLE_RULE).message(RESTORABLE_MESSAGE).field_path(".verify"))]
pub struct EtcdBackupSpec {
    /// The ClusterDeployment whose etcd is backed up, also one that others run (`etcd.topology: External`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub cluster_name: Option<String>,
    /// The KarmadaDeployment whose etcd is backed up, with the plane's keys. With `mode: Binary` it is read on one of
    /// its machines. On another host cluster than the metadata cluster only an external etcd can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub karmada_deployment_ref: Option<LocalRef>,
    /// An etcd that is backed up in place of a cluster's: any that Pods of the metadata cluster reach, e.g. the
    /// metadata cluster's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdEndpoints>,
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
    /// True: the member's machine first writes the snapshot to its disk, below `/var/lib/clusterwright/spool`, where
    /// 1.2 times the size of the database must be free, and sends it from there; it is removed in every case. So a slow
    /// storage does not hold the member up, whose database would grow meanwhile. Not for an etcd that others run, nor
    /// for a plane in Pods. Default false.
    #[serde(default)]
    pub spool: bool,
    /// What becomes of what it has stored when the EtcdBackup is deleted. Default `Retain`.
    #[serde(default)]
    pub deletion_policy: BackupDeletionPolicy,
    /// How long the EtcdBackup stays after it has ended, well or not, in seconds, 0 to 1576800000; then it is deleted,
    /// as `deletionPolicy` says, and later where an EtcdRestore that has not ended is of it. Default: it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_576_800_000))]
    pub ttl_seconds: Option<i32>,
    /// How it is verified once more, by itself, after it was stored. Default: it is not; it was read back when it was
    /// stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
}

/// CEL: one etcd.
const TARGET_RULE: &str =
    "[has(self.clusterName), has(self.karmadaDeploymentRef), has(self.etcd)].filter(given, given).size() == 1";
const TARGET_MESSAGE: &str = "exactly one of clusterName, karmadaDeploymentRef and etcd is required";
/// CEL: only a cluster has an artifact bundle with the programs that restore its etcd.
pub(crate) const RESTORABLE_RULE: &str =
    "!((has(self.etcd) || has(self.karmadaDeploymentRef)) && has(self.verify) && self.verify.how == 'Restore')";
pub(crate) const RESTORABLE_MESSAGE: &str = "verify.how: Restore goes with a cluster, whose artifact bundle has the programs of etcd; with etcd or karmadaDeploymentRef use how: Hash";
/// CEL: only what is decrypted can be restored.
pub(crate) const IDENTITY_RULE: &str = "self.how != 'Restore' || has(self.identityRef)";
pub(crate) const IDENTITY_MESSAGE: &str =
    "identityRef is required with how: Restore: name a Secret with the age identity in key identity";

/// How a stored backup is verified.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(IDENTITY_RULE).message(IDENTITY_MESSAGE).field_path(".identityRef"))]
pub struct Verify {
    /// What is done.
    pub how: VerifyMethod,
    /// The Secret with an age identity that decrypts the backup: key `identity`, as `age-keygen` writes it. Required
    /// with `Restore`. With `Hash`, what is stored is decrypted and checked, too; default: it is not. Whoever reads the
    /// Secret can read every Secret of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_ref: Option<LocalRef>,
}

/// What is done to verify a backup.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
pub enum VerifyMethod {
    /// All that is stored is read: size and SHA-256 of each object. With an identity it is decrypted, and the decrypted
    /// bytes, etcd's own digest and the bundle are checked, too.
    Hash,
    /// All that, and the snapshot is restored into an etcd of one member, in a Pod of the metadata cluster: its
    /// revision and its number of keys are compared, and every object is read and decoded.
    Restore,
}

/// An etcd by its endpoints.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdEndpoints {
    /// Client URLs of its members, `https://HOST:PORT` with an IPv4 address or a DNS name, 1 to 9. All are of one etcd.
    #[schemars(length(min = 1, max = 9), inner(length(min = 11, max = 270)))]
    #[x_kube(
        merge_strategy = ListMerge::Set,
        validation = Rule::new(ENDPOINTS_RULE)
            .message("etcd.endpoints are URLs of the form https://HOST:PORT, with an IPv4 address or a DNS name and a port of 1 to 65535, e.g. https://10.0.0.5:2379")
    )]
    pub endpoints: Vec<String>,
    /// A Secret of type `kubernetes.io/tls` with one key more, as `etcd.secretRef` of a ClusterDeployment. `ca.crt`:
    /// the authorities that the members' certificates come from; `tls.crt` and `tls.key`: a client certificate and its
    /// private key without a passphrase. All PEM. Where etcd has users, its common name is one with the role `root`.
    pub secret_ref: LocalRef,
    /// Below which keys the data is that matters: if there are none, it is another etcd than was meant, and the backup
    /// is refused; `keys` of the backup counts them. The snapshot holds all keys. Default: every key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 128), regex(pattern = r"^(/[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?)+$"))]
    pub prefix: Option<String>,
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
    /// When it was verified. Absent: it was not, or it is not what was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verification>,
    /// When a verification found that it is not what was stored; the condition `Verified` says what differs. It does
    /// not count as a backup any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged: Option<Verification>,
    /// When it was last tried in vain to verify it: the storage was away, or something was missing for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification_tried_at: Option<Time>,
    /// How often that was in vain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification_failures: Option<i32>,
    /// As a Job has them: `Complete` is True once the backup is there, `Failed` once it was given up. `Reconciling`
    /// until it has ended, `Stalled` once it has without success, or was found damaged. `Verified` where `spec.verify`
    /// asks for it. `Deleting` while what it has stored is removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// A verification that came to an end.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// When.
    pub at: Time,
    /// What was done.
    pub how: VerifyMethod,
}

impl EtcdBackup {
    /// What it holds, if it is a good backup: it was stored whole, and no verification has found otherwise.
    pub fn good(&self) -> Option<&BackupContent> {
        let status = self.status.as_ref().filter(|status| status.damaged.is_none())?;
        status.backup.as_ref().filter(|_| status.phase == Some(BackupPhase::Succeeded))
    }

    /// Whether a verification is asked for that has not come to an end, and may do so yet.
    pub fn is_to_be_verified(&self) -> bool {
        let status = self.status.as_ref();
        let has_ended = status.is_some_and(|status| {
            status.verified.is_some() || status.damaged.is_some() || status.phase == Some(BackupPhase::Failed)
        });
        self.spec.verify.is_some() && !has_ended
    }
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
    /// Keys at that revision; of an external etcd, those below its prefix.
    pub keys: i64,
    /// Bytes of the snapshot.
    pub size: i64,
    /// SHA-256 of the snapshot, hexadecimal.
    #[schemars(length(max = 64))]
    pub sha256: String,
    /// The Host whose member was read, or `HOST:PORT` of its endpoint.
    #[schemars(length(max = 259))]
    pub member: String,
    /// etcd's version.
    #[schemars(length(max = 64))]
    pub etcd_version: String,
    /// The version of Kubernetes that the cluster, or the plane's API server, ran, if it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<KubernetesVersion>,
    /// Of a plane, the version of Karmada that it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub karmada_version: Option<ComponentVersion>,
    /// When the snapshot was begun.
    pub started_at: Time,
    /// When it was stored and read back.
    pub completed_at: Time,
}
