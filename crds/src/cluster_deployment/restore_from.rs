//! A cluster that begins with the data and the keys of a backup.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::KubernetesVersion;
use crate::etcd_restore::RestoreSource;
use crate::references::LocalRef;

/// The backup that a new cluster, or a new Karmada control plane, begins with.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreFrom {
    /// The backup: of any cluster, or, for a plane, of any plane; also one that another metadata cluster looked after.
    pub source: RestoreSource,
    /// The Secret with the age identity that decrypts the backup: key `identity`, as `age-keygen` writes it. Delete it
    /// once the cluster, or the plane, stands: whoever reads it can read every Secret of it.
    pub identity_ref: LocalRef,
}

/// The backup that a cluster was installed from, or is about to be.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoredFrom {
    /// Name of the EtcdBackup that it was made by.
    #[schemars(length(max = 63))]
    pub backup: String,
    /// Name of the cluster that was backed up.
    #[schemars(length(max = 63))]
    pub cluster: String,
    /// UID of its ClusterDeployment.
    #[serde(rename = "clusterUID")]
    #[schemars(length(max = 64))]
    pub cluster_uid: String,
    /// The BackupStorage that it is in.
    pub storage_ref: LocalRef,
    /// Its directory in the storage, below the prefix.
    #[schemars(length(max = 512))]
    pub location: String,
    /// When it was begun.
    pub taken_at: Time,
    /// Every write up to this revision is in it.
    pub revision: i64,
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
    /// `networking.podCIDR` of the cluster that was backed up. Absent: it is this very ClusterDeployment.
    #[serde(default, rename = "podCIDR", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub pod_cidr: Option<String>,
    /// Its `networking.serviceCIDR`.
    #[serde(default, rename = "serviceCIDR", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub service_cidr: Option<String>,
    /// Its `networking.dnsDomain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub dns_domain: Option<String>,
    /// When a person approved that it be restored. Absent for `recovery.strategy: RestoreLatest`, which needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_at: Option<Time>,
    /// When the cluster that was installed with it stood. Absent: it does not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_at: Option<Time>,
}
