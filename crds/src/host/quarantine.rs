//! Why a Host is kept out of the pool.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::step::Role;
use crate::{ClusterKind, FormerRef};

/// Why a Host is kept out of the pool.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Quarantine {
    /// What led to it.
    pub reason: QuarantineReason,
    /// What was wrong, for people.
    #[schemars(length(max = 1024))]
    pub message: String,
    /// The Machine that it was taken from.
    #[schemars(length(max = 63))]
    pub machine: String,
    /// The MachineSet of that Machine, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub machine_set: Option<String>,
    /// UID of that Machine; absent when its cluster was lost with it, so that none of its members of etcd is left.
    #[serde(default, rename = "machineUID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub machine_uid: Option<String>,
    /// The cluster that it was a machine of, where that is known: a Node by which it comes back there is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub cluster_name: Option<String>,
    /// The kind of the object that `clusterName` names. Default `ClusterDeployment`.
    #[serde(default, skip_serializing_if = "ClusterKind::is_default")]
    pub cluster_kind: ClusterKind,
    /// What it was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// What it still is when it comes back: its machine was given up without being cleaned. Absent where nobody is to
    /// touch it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<QuarantineFence>,
    /// Since when.
    pub since: Time,
}

impl Quarantine {
    /// Whose machine it was, where that is known.
    pub fn former(&self) -> Option<FormerRef<'_>> {
        Some(FormerRef { kind: self.cluster_kind, name: self.cluster_name.as_deref()? })
    }
}

/// The claim under which a machine was given up. When it answers again, and its guard knows exactly this claim and none
/// after it, what serves or speaks for the cluster there is stopped and disabled; no data is deleted.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuarantineFence {
    /// The Host's `claimEpoch` then.
    #[schemars(range(min = 0))]
    pub claim_epoch: i64,
    /// UID of the object whose machine it was, and that gave it up: no other one touches it.
    #[serde(rename = "clusterUID")]
    #[schemars(length(min = 1, max = 64))]
    pub cluster_uid: String,
    /// True once that was done.
    #[serde(default)]
    pub fenced: bool,
}

/// What leads to a quarantine.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum QuarantineReason {
    /// It could not be made part of a cluster, as often as that was allowed. Ends by `release`.
    JoinFailed,
    /// It could not be cleaned. Ends by `release`.
    CleaningFailed,
    /// Its Machine was removed without reaching it. Ends by itself when a probe finds it clean, or by `release`.
    ForceRemoved,
    /// Its machine was claimed by somebody whom the metadata cluster, set back to an older state, does not know. Ends
    /// by itself when a probe finds it clean, or by `release`.
    StoreIsOlder,
}
