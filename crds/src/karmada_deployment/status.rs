//! How it stands with a plane.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::members::SyncMode;
use super::restore::KarmadaRestoredFrom;
use super::upgrade::KarmadaUpgradeStatus;
use crate::cluster_deployment::{EtcdStatus, ForgottenMachine, ReplicaCounts};
use crate::lock::Operation;
use crate::references::LocalRef;
use crate::store_comparison::StoreComparison;

/// How it stands with a plane.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KarmadaDeploymentStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One sentence: what is done, what it waits for, or what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// The version of Karmada that all components had last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub version: Option<String>,
    /// The upgrade that is planned, or under way. Absent: every component has the version that is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<KarmadaUpgradeStatus>,
    /// The backup that the plane began with or was set back to last, or is about to. Absent: it began empty, or its
    /// keys are being fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<KarmadaRestoredFrom>,
    /// URL of the plane's API server, as members and administrators reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 300))]
    pub endpoint: Option<String>,
    /// The Secret with the administrator's kubeconfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_ref: Option<LocalRef>,
    /// When the first of the plane's certificates ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificates_expire_at: Option<Time>,
    /// When what watches members was restarted last because credentials of members had changed, which Karmada up to
    /// 1.18 does not read again. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarted_for_tokens_at: Option<Time>,
    /// The components, in the order in which they start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub components: Vec<KarmadaComponentStatus>,
    /// The members, by name; also those that leave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub members: Vec<KarmadaMemberStatus>,
    /// How many members there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_counts: Option<MemberCounts>,
    /// With mode `Binary`: the machines of `binary.controlPlane`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<ReplicaCounts>,
    /// With mode `Binary` and a dedicated etcd: the machines of `binary.etcd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_machines: Option<ReplicaCounts>,
    /// With mode `Binary`: when the first run on its machines, which begins its etcd, had succeeded. From then on
    /// machines join, nothing is begun anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_installed_at: Option<Time>,
    /// With mode `Binary`: the members of its etcd, and what was done to keep them in order. Absent: nothing is known
    /// of them yet, or others run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdStatus>,
    /// The lock: the runs that hold the plane's machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["run"]))]
    pub operations: Vec<Operation>,
    /// The highest token given out. Absent: not known (the status is new, or was lost); nothing starts on its machines
    /// until it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_token: Option<i64>,
    /// `lastToken` when the lock was opened for a plane that held no machine yet. Absent: 0 is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_token: Option<i64>,
    /// With mode `Binary`: the time at which an operator took this metadata cluster up again (the annotation
    /// `resumed-at` of its Lease) and for which the plane's machines were compared with it: nothing is done to them
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_since: Option<Time>,
    /// The comparisons by which machines tell a run that this metadata cluster does not know, oldest first: each run
    /// that takes machines over brings them. The last is that of `comparedSince`; there are more only while a machine
    /// of the plane has not answered since. At most 32, the newest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["since"]))]
    pub comparisons: Vec<StoreComparison>,
    /// Digests of what contradicts this metadata cluster on machines (condition `StoreIsOlder`) and was approved by
    /// `clusterwright.dev/approve: store.<digest>`, until nothing contradicts it any more. At most 5000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5000), inner(length(max = 64)))]
    pub approved_contradictions: Vec<String>,
    /// Machines that were removed without reaching them, until no member of etcd stands for them any more; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["uid"]))]
    pub forgotten: Vec<ForgottenMachine>,
    /// `Ready`, `EtcdReady`, `APIServerReady`, `ComponentsReady`, `MembersReady`, `UpToDate`; `BackedUp` where an
    /// EtcdBackupSchedule is for the plane; `LockAvailable`, `AuthoritiesRotated` and `StoreIsOlder` only while they
    /// say something; `Deleting` while it is so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 12), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// A component as it runs.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KarmadaComponentStatus {
    /// E.g. `etcd`, `kube-apiserver`, `karmada-scheduler`.
    #[schemars(length(max = 63))]
    pub name: String,
    /// The version that its Pods are made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub version: Option<String>,
    /// Pods that are wanted.
    #[serde(default)]
    pub replicas: i32,
    /// Pods that are ready.
    #[serde(default)]
    pub ready_replicas: i32,
}

/// How far a member is, for people; no controller decides by it.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum KarmadaMemberPhase {
    /// It has not begun to join.
    #[default]
    Waiting,
    /// It joins.
    Joining,
    /// It is a member, and Karmada reaches it.
    Joined,
    /// It is a member, and Karmada does not reach it.
    Lost,
    /// It leaves.
    Leaving,
    /// It neither joins nor leaves until somebody acts.
    Blocked,
}

/// A member as it is seen.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KarmadaMemberStatus {
    /// Its name in the plane.
    #[schemars(length(max = 48))]
    pub name: String,
    /// Who carries objects to it.
    pub sync_mode: SyncMode,
    /// The Cluster that it is, where it joined by itself or by `clusterRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<LocalRef>,
    /// The Secret with its kubeconfig, where it joined by `kubeConfigSecretName`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub kube_config_secret_name: Option<String>,
    /// The Host that its kubeconfig is read on, where it joined by `hostRef`; until what was read is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ref: Option<LocalRef>,
    /// True: `autoJoin` made it a member.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto_joined: bool,
    /// UID of its namespace `kube-system`: its identity. Absent: it has not begun to join.
    #[serde(default, rename = "clusterUID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub cluster_uid: Option<String>,
    /// When Karmada reached it first. Absent: it has not joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined_at: Option<Time>,
    /// Since when it leaves. Absent: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving_since: Option<Time>,
    /// How far it is.
    #[serde(default)]
    pub phase: KarmadaMemberPhase,
    /// Why, CamelCase.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// Why, in one sentence.
    #[schemars(length(max = 512))]
    pub message: String,
    /// Since when it is in this phase.
    pub since: Time,
}

/// How many members.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberCounts {
    /// Members there are to be.
    pub total: i32,
    /// Members that Karmada reaches.
    pub ready: i32,
    /// `ready/total`, for the column.
    #[schemars(length(max = 32))]
    pub summary: String,
}
