//! How far a cluster is: counts, the lock, conditions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::etcd_status::EtcdStatus;
use super::planned::RolloutPlan;
use super::restore_from::RestoredFrom;
use crate::KubernetesVersion;
use crate::component::ClusterComponent;
use crate::lock::Operation;
use crate::references::LocalRef;
use crate::remediation_policy::RemediationAction;
use crate::step::Role;
use crate::store_comparison::StoreComparison;

/// How many of one kind of machine there are.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaCounts {
    /// Wanted.
    #[serde(default)]
    pub replicas: i32,
    /// Their nodes are Ready (for dedicated etcd: the member is provisioned).
    #[serde(default)]
    pub ready_replicas: i32,
    /// At the version wanted.
    #[serde(default)]
    pub updated_replicas: i32,
    /// `ready/wanted`, for the column.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub summary: String,
}

/// Where one API server answers.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneEndpoint {
    /// Name of the Machine.
    #[schemars(length(max = 63))]
    pub machine: String,
    /// IP address or DNS name of the machine.
    #[schemars(length(max = 253))]
    pub host: String,
    /// Port of its API server.
    pub port: i32,
    /// Whether clients may be sent there: the machine is provisioned, its node Ready, and it does not leave.
    pub ready: bool,
}

/// What is done about a sick machine, or why nothing is.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Repair {
    /// Name of the Machine.
    #[schemars(length(max = 63))]
    pub machine: String,
    /// The action under way; absent: nothing is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<RemediationAction>,
    /// CamelCase, e.g. `Rebooting`, `TooManyUnhealthy`, `BudgetExhausted`, `ClusterUnreachable`.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// A sentence: what is done, or why not, and what is next.
    #[schemars(length(max = 1024))]
    pub message: String,
    /// Since when this is so.
    pub since: Time,
}

/// A machine that was removed without reaching it, while something in the cluster may still stand for it.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForgottenMachine {
    /// UID of its Machine.
    #[schemars(length(max = 64))]
    pub uid: String,
    /// Name of its Machine.
    #[schemars(length(max = 63))]
    pub machine: String,
    /// Name of its Host: its Node and its member of etcd have it, too.
    #[schemars(length(max = 63))]
    pub host: String,
    /// What it was in the cluster.
    pub role: Role,
    /// Whether it had become part of the cluster.
    #[serde(default)]
    pub provisioned: bool,
    /// Whether it may still be a member of etcd: it is taken out before another machine joins.
    #[serde(default)]
    pub etcd_member: bool,
    /// Whether its Node was Ready when it was last looked at; false: it was not, or is not there, or is not known.
    #[serde(default)]
    pub node_ready: bool,
    /// Since when it has been written down.
    pub since: Time,
}

/// The manifests that a run applied to the cluster last: digests, compared with what the ConfigMaps hold now. An absent
/// one is not known.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifests {
    /// Token of the last run that was taken into account.
    #[serde(default)]
    pub token: i64,
    /// Of the ConfigMap of `networking.plugin.manifestsRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub network: Option<String>,
    /// Of `configuration.kubeProxy`. Absent: nothing was configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub kube_proxy: Option<String>,
    /// Of `versions.coredns`. Absent: CoreDNS has the version of the bundle's table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub coredns: Option<String>,
}

/// How far the cluster is.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDeploymentStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Pending`, `Provisioning`, `Running`, `Degraded`, `Deleting`, `Failed`; for people, no controller decides by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub phase: Option<String>,
    /// One sentence: what it is doing, what it waits for, or what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// The version that every node has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub kubernetes_version: Option<String>,
    /// The version whose rollout has begun: written together with the lock of the first run that brings it to a
    /// machine. `spec.kubernetesVersion` may go back to it, and no further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_kubernetes_version: Option<KubernetesVersion>,
    /// Where the API answers: `https://host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 300))]
    pub endpoint: Option<String>,
    /// The Cluster object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<LocalRef>,
    /// Secret with the administrator's kubeconfig (key `kubeconfig`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_ref: Option<LocalRef>,
    /// Control planes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ReplicaCounts>,
    /// Workers of all sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<ReplicaCounts>,
    /// Name of the machine that runs `kubeadm init`; chosen once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub first_control_plane: Option<String>,
    /// When the install run succeeded: from then on machines join, nothing is initialised again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed_at: Option<Time>,
    /// The backup that it was installed from, or is about to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<RestoredFrom>,
    /// The components that each run installs, in these very versions and files, whatever the bundle's index says of
    /// newer ones: those of `spec.versions`, and all others as they were resolved once for this Kubernetes version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub components: Vec<ClusterComponent>,
    /// The manifests that were applied to the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_manifests: Option<AppliedManifests>,
    /// The lock: the runs that hold the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["run"]))]
    pub operations: Vec<Operation>,
    /// The highest token given out. Absent: not known (the status is new, or was lost); nothing starts until it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_token: Option<i64>,
    /// `lastToken` when the lock was opened for a cluster that held no machine yet: tokens up to it are of runs that
    /// were made before, or for an earlier ClusterDeployment of this name. Absent: 0 is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_token: Option<i64>,
    /// Where the API servers answer, one for each control plane: what a load balancer or DNS needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["machine"]))]
    pub control_plane_endpoints: Vec<ControlPlaneEndpoint>,
    /// What is done about sick machines, or why nothing is; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["machine"]))]
    pub repairs: Vec<Repair>,
    /// When it was last seen that no more machines are sick at once than `maxUnhealthy` allows, after more were:
    /// nothing is done for `cooldownSeconds` from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calm_since: Option<Time>,
    /// While more machines are sick at once than `maxUnhealthy` allows: the value of the annotation
    /// `clusterwright.dev/approve` that lets repairs go on all the same, e.g. `repair.4k2m9x0c7d1e`. A value that was
    /// there before counts for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub repair_approval: Option<String>,
    /// The time at which an operator took this metadata cluster up again (the annotation `resumed-at` of its Lease) and
    /// for which the cluster's machines were compared with it: nothing is done to them before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_since: Option<Time>,
    /// The comparisons by which machines tell a run that this metadata cluster does not know, oldest first: each run
    /// that takes machines over brings them. The last is that of `comparedSince`; there are more only while a machine
    /// of the cluster has not answered since. At most 32, the newest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["since"]))]
    pub comparisons: Vec<StoreComparison>,
    /// Digests of what contradicts this metadata cluster on machines (condition `StoreIsOlder`) and was approved by
    /// `clusterwright.dev/approve: store.<digest>`, until nothing contradicts it any more. At most 5000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5000), inner(length(max = 64)))]
    pub approved_contradictions: Vec<String>,
    /// Machines that were removed without reaching them (`force-remove`), until nothing in the cluster stands for them
    /// any more: no member of etcd, no Node. At most 500.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["uid"]))]
    pub forgotten: Vec<ForgottenMachine>,
    /// etcd: its members, what they hold, and what was done to keep them in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdStatus>,
    /// A newer spec that waits for the current run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_generation: Option<i64>,
    /// What is still to be done to machines that stay, for the spec as it stands. Absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<RolloutPlan>,
    /// `Ready`, `ControlPlaneReady`, `EtcdReady`, `WorkersReady`, `NetworkReady`, `AddonsReady`, `UpToDate`,
    /// `Progressing`, `Paused`, `Deleting`; `Reconciling` or `Stalled`, `LockAvailable`, `ReplicasReverted`,
    /// `MachinesForgotten` and `RemovalsHeld` only while they say something; `Remediation` where a policy holds,
    /// `BackedUp` where a schedule is for the cluster, `EtcdDataHealthy` where etcd's members are its own,
    /// `CertificatesValid` once it is installed, `AuthoritiesRotated` once a rotation was asked for, `EtcdDefragmented`
    /// where their defragmentation is scheduled or was asked for, and `MaintenanceWindowsValid` where
    /// `spec.rollout.windows` has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
