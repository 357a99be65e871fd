//! EtcdRestore: the etcd of a cluster, or of a Karmada control plane, is set back to a backup, in place.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::KubernetesVersion;
use crate::etcd_backup::{BackupEncryption, EtcdBackup};
use crate::karmada_deployment::KarmadaRestoredFrom;
use crate::playbook_run::RunPhase;
use crate::references::LocalRef;

/// Key of the Secret of `identityRef` that holds the age identity.
pub const IDENTITY_KEY: &str = "identity";

/// One restore.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "clusterwright.dev",
    version = "v1alpha1",
    kind = "EtcdRestore",
    plural = "etcdrestores",
    shortname = "er",
    category = "clusterwright",
    namespaced,
    status = "EtcdRestoreStatus",
    derive = "PartialEq",
    doc = "Sets the etcd of a cluster back to a backup, or of a Karmada control plane, on the machines or in the Pods that it has. Nothing changes before it is approved.",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterName"),
    printcolumn(name = "Plane", type_ = "string", json_path = ".spec.karmadaDeploymentRef.name", priority = "1"),
    printcolumn(name = "Backup", type_ = "string", json_path = ".status.staged.backup"),
    printcolumn(name = "Taken", type_ = "date", json_path = ".status.staged.takenAt"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 50")
        .message("metadata.name: an RFC 1123 label of at most 50 characters"),
    selectable = ".spec.clusterName"
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self == oldSelf").message("Forbidden: an EtcdRestore is immutable; make a new one"))]
#[x_kube(validation = Rule::new("has(self.clusterName) != has(self.karmadaDeploymentRef)")
    .message("exactly one of clusterName and karmadaDeploymentRef is required"))]
pub struct EtcdRestoreSpec {
    /// The ClusterDeployment whose etcd is restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub cluster_name: Option<String>,
    /// The KarmadaDeployment whose etcd is restored: one with an etcd of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub karmada_deployment_ref: Option<LocalRef>,
    /// The backup that it is set back to.
    pub source: RestoreSource,
    /// The Secret with the age identity that decrypts the backup: key `identity`, as `age-keygen` writes it. Delete it
    /// once the restore has ended: whoever reads it can read every Secret of the cluster, or of the plane.
    pub identity_ref: LocalRef,
    /// The backup of what is there that is taken once the restore is approved, before anything is stopped: an
    /// EtcdBackup named `<name>-before` (a longer name is shortened), which nothing deletes. If it cannot be taken, the
    /// restore goes on, and says so. Default: to the storage of the EtcdBackup of `source.backupRef`, for its
    /// recipients; with `source.stored`, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safety_backup: Option<SafetyBackup>,
    /// How long the data that was there before stays on the machines after the restore, in seconds, 0 to 31536000.
    /// Default 604800. Deleting the EtcdRestore removes it, too. Of a plane in Pods nothing removes it: see
    /// `formerClaims` of its `status.restoredFrom`.
    #[serde(default = "default_keep")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub keep_old_data_seconds: i32,
    /// Deadline of each of its runs in seconds, 600 to 86400. Default 3600. A plane in Pods has none; there it is that
    /// of the backup of what is there.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 600, max = 86400))]
    pub timeout_seconds: i32,
}

impl EtcdRestoreSpec {
    /// What is restored, as messages call it: `cluster paris`, `KarmadaDeployment k1`.
    pub fn subject(&self) -> String {
        match (&self.cluster_name, &self.karmada_deployment_ref) {
            (Some(name), _) => format!("cluster {name}"),
            (None, Some(plane)) => format!("KarmadaDeployment {}", plane.name),
            (None, None) => "nothing".to_owned(),
        }
    }

    /// Whether it is of the KarmadaDeployment of this name.
    pub fn is_for_plane(&self, name: &str) -> bool {
        self.karmada_deployment_ref.as_ref().is_some_and(|plane| plane.name == name)
    }
}

/// Where the backup of what is there goes, or that none is taken.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.storageRef) == has(self.encryption) && has(self.storageRef) != self.skip")
    .message("give storageRef and encryption, or skip: true"))]
pub struct SafetyBackup {
    /// The BackupStorage that it goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_ref: Option<LocalRef>,
    /// Whom it is encrypted for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<BackupEncryption>,
    /// True: none is taken. Default false.
    #[serde(default)]
    pub skip: bool,
}

/// Where a backup is found: exactly one of both.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.backupRef) != has(self.stored)").message("exactly one of backupRef and stored is required"))]
pub struct RestoreSource {
    /// An EtcdBackup that has succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_ref: Option<LocalRef>,
    /// A backup of which there is no EtcdBackup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredBackup>,
}

impl RestoreSource {
    /// The BackupStorage that it is in; none where the EtcdBackup of `backupRef`, which is given, is not there.
    pub fn storage<'a>(&'a self, backup: Option<&'a EtcdBackup>) -> Option<&'a LocalRef> {
        let stored = self.stored.as_ref().map(|stored| &stored.storage_ref);
        stored.or(backup.map(|backup| &backup.spec.storage_ref))
    }
}

/// A backup in a storage.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoredBackup {
    /// The BackupStorage.
    pub storage_ref: LocalRef,
    /// The backup's directory below the storage's prefix: the one that holds its `manifest.json`.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[A-Za-z0-9_=.-]+(/[A-Za-z0-9_=.-]+)*$"))]
    #[x_kube(validation = Rule::new("self.split('/').all(p, p != '.' && p != '..')").message("no part of it may be . or .."))]
    pub location: String,
}

fn default_keep() -> i32 {
    604_800
}

fn default_timeout() -> i32 {
    3600
}

/// Where a restore is.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum RestorePhase {
    /// It waits to begin.
    Pending,
    /// The backup is checked, and brought to the machines beside the data that is there; of a plane its keys are
    /// fetched. The cluster, or the plane, works on.
    Staging,
    /// All is checked and ready; it waits for approval.
    AwaitingApproval,
    /// It is approved, and what is there is backed up first. The cluster, or the plane, works on.
    BackingUp,
    /// The control plane is stopped, and etcd's data replaced. A plane then serves administrators, and nothing acts,
    /// until what becomes of its members is approved, too.
    Restoring,
    /// The API serves the backup's data; kubelets and runtimes are restarted, and the cluster is proved to work. Of a
    /// plane: what acts is started.
    Restarting,
    /// The run that restores ended before the control plane was released. It goes on, or is undone, once that is
    /// approved.
    Interrupted,
    /// The data that was there before comes back.
    Undoing,
    /// The cluster has the backup's data.
    Succeeded,
    /// The cluster has the data again that it had before.
    Undone,
    /// It was given up before anything of the cluster was touched.
    Failed,
}

impl RestorePhase {
    /// How a run that ends so has ended; none while something comes of it yet.
    pub fn end(self) -> Option<RunPhase> {
        match self {
            Self::Succeeded => Some(RunPhase::Succeeded),
            Self::Undone | Self::Failed => Some(RunPhase::Failed),
            Self::Pending
            | Self::Staging
            | Self::AwaitingApproval
            | Self::BackingUp
            | Self::Restoring
            | Self::Restarting
            | Self::Interrupted
            | Self::Undoing => None,
        }
    }

    /// Whether the control plane may be stopped for it.
    pub fn holds_the_cluster(self) -> bool {
        match self {
            Self::Restoring | Self::Interrupted | Self::Undoing => true,
            Self::Pending
            | Self::Staging
            | Self::AwaitingApproval
            | Self::BackingUp
            | Self::Restarting
            | Self::Succeeded
            | Self::Undone
            | Self::Failed => false,
        }
    }

    /// Whether nothing of the cluster has been stopped for it yet.
    pub fn is_before_the_hold(self) -> bool {
        match self {
            Self::Pending | Self::Staging | Self::AwaitingApproval | Self::BackingUp => true,
            Self::Restoring
            | Self::Restarting
            | Self::Interrupted
            | Self::Undoing
            | Self::Succeeded
            | Self::Undone
            | Self::Failed => false,
        }
    }
}

/// How a restore stands.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdRestoreStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<RestorePhase>,
    /// One sentence: what it is doing, waits for, or what went wrong; and what to type where it waits for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// The PlaybookRun of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_ref: Option<LocalRef>,
    /// What lies ready on the machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged: Option<StagedBackup>,
    /// The backup as a plane takes it over, into its `status.restoredFrom`, once that is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plane_backup: Option<KarmadaRestoredFrom>,
    /// The EtcdBackup of what was there before, if one could be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safety_backup: Option<LocalRef>,
    /// When the control plane was stopped. Of a plane: when the plane was to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_at: Option<Time>,
    /// When it ended, well or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// When what it left on the machines was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_data_removed_at: Option<Time>,
    /// As a Job has them: `Complete` is True once the cluster has the backup's data, `Failed` once it was given up or
    /// undone. `Reconciling` until it has ended, `Stalled` while it waits for a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// A backup that lies on the machines, checked, beside the data that is there. A run's status has the same, in
/// `staged`.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StagedBackup {
    /// Name of the EtcdBackup that it was made by.
    #[schemars(length(max = 63))]
    pub backup: String,
    /// Its directory in the storage, below the prefix.
    #[schemars(length(max = 512))]
    pub location: String,
    /// When it was begun.
    pub taken_at: Time,
    /// Every write up to this revision is in it.
    pub revision: i64,
    /// Keys at that revision.
    pub keys: i64,
    /// Bytes of the snapshot.
    pub size: i64,
    /// SHA-256 of the snapshot, hexadecimal.
    #[schemars(length(max = 64))]
    pub sha256: String,
    /// etcd's version when it was taken.
    #[schemars(length(max = 64))]
    pub etcd_version: String,
    /// The version of Kubernetes that the cluster ran then, if it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<KubernetesVersion>,
    /// The highest revision that a member reported when it was staged: what came after `revision` is lost. Absent: none
    /// answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_revision: Option<i64>,
    /// By how much revisions are raised, so that none is ever given out twice.
    pub bump: i64,
    /// ID of etcd's cluster once it is restored, hexadecimal.
    #[serde(rename = "clusterID")]
    #[schemars(length(max = 16))]
    pub cluster_id: String,
}
