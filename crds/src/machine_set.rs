//! MachineSet: a role with a count.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::node_metadata::{self, AnnotationValue, LabelValue, Taint};
use crate::placement::{HostNames, HostSelector, SpreadKeys};
use crate::step::Role;
use crate::{ClusterKind, FormerRef, KubernetesVersion};

/// A role with a count.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "clusterwright.dev",
    version = "v1alpha1",
    kind = "MachineSet",
    plural = "machinesets",
    shortname = "ms",
    category = "clusterwright",
    namespaced,
    status = "MachineSetStatus",
    derive = "PartialEq",
    doc = "Machines of one role of a cluster, with a count. A worker set whose count the ClusterDeployment leaves open is scaled with `kubectl scale`.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterName"),
    printcolumn(name = "Role", type_ = "string", json_path = ".spec.role"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    selectable = ".spec.clusterName",
    selectable = ".spec.clusterKind",
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 54")
        .message("metadata.name: a MachineSet's name is an RFC 1123 label that begins with a letter, of at most 54 characters: the names of its machines derive from it")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.clusterName == oldSelf.clusterName && self.clusterKind == oldSelf.clusterKind && self.role == oldSelf.role")
    .message("Forbidden: clusterName, clusterKind and role are immutable"))]
#[x_kube(validation = Rule::new("self.clusterKind != 'KarmadaDeployment' || self.role in ['control-plane', 'etcd']")
    .message("role: the machines of a KarmadaDeployment are control-plane or etcd; workers are of ClusterDeployments")
    .field_path(".role"))]
#[x_kube(validation = Rule::new("self.clusterKind != 'KarmadaDeployment' || !(has(self.template.kubernetesVersion) || has(self.template.labels) || has(self.template.annotations) || has(self.template.taints))")
    .message("template: kubernetesVersion, labels, annotations and taints are of Nodes, and a machine of a KarmadaDeployment is none: leave them out")
    .field_path(".template"))]
pub struct MachineSetSpec {
    /// What the machines belong to: the ClusterDeployment of this name, or what `clusterKind` says.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub cluster_name: String,
    /// The kind of the object that `clusterName` names. Immutable. Default `ClusterDeployment`.
    #[serde(default, skip_serializing_if = "ClusterKind::is_default")]
    #[schemars(extend("default" = "ClusterDeployment"))]
    pub cluster_kind: ClusterKind,
    /// What the machines are.
    pub role: Role,
    /// How many, 0 to 5000. Default 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 5000))]
    pub replicas: i32,
    /// How many more than `replicas` while machines of the set are drained for a change, 0 to 5000. Default 0. In a set
    /// of a ClusterDeployment it is written by the operator, by `maxSurge`.
    #[serde(default)]
    #[schemars(range(min = 0, max = 5000))]
    pub surge: i32,
    /// What each machine is like.
    #[serde(default)]
    pub template: MachineTemplate,
    /// `Automatic` (default): makes and deletes its Machines. `Manual`: its Machines are a platform's.
    #[serde(default)]
    pub mode: MachineSetMode,
    /// Which machines go first when the count goes down.
    #[serde(default)]
    pub deletion: Deletion,
    /// How long a machine must have been Ready to count as available, in seconds, 0 to 86400. Default 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 86400))]
    pub min_ready_seconds: i32,
}

impl MachineSetSpec {
    /// What the machines belong to.
    pub fn former(&self) -> FormerRef<'_> {
        FormerRef { kind: self.cluster_kind, name: &self.cluster_name }
    }

    /// How many Machines there are to be: `replicas`, and those that join for a change.
    pub fn count(&self) -> usize {
        usize::try_from(self.replicas.saturating_add(self.surge)).unwrap_or_default()
    }
}

/// What each machine of a set is like.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!(has(self.hosts) && has(self.hostSelector))")
    .message("hosts and hostSelector exclude each other: name the Hosts, or select them by labels"))]
pub struct MachineTemplate {
    /// Which Hosts may be taken, by labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_selector: Option<HostSelector>,
    /// Which Hosts may be taken, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub hosts: Option<HostNames>,
    /// Keys of Host labels over whose values the machines are spread.
    #[serde(default, skip_serializing_if = "SpreadKeys::is_empty")]
    pub spread_by: SpreadKeys,
    /// Labels of the nodes. An edit reaches the Machines that the set made or took over, and their Nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "node_metadata::labels")]
    pub labels: BTreeMap<String, LabelValue>,
    /// Annotations of the nodes; an edit is rolled out as one of `labels`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "node_metadata::annotations")]
    pub annotations: BTreeMap<String, AnnotationValue>,
    /// Taints of the nodes; an edit is rolled out as one of `labels`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "node_metadata::taints")]
    pub taints: Vec<Taint>,
    /// Kubernetes version, without `v`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<KubernetesVersion>,
}

/// Who makes the machines.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum MachineSetMode {
    /// The set does.
    #[default]
    Automatic,
    /// A platform does.
    Manual,
}

/// Which machines go first.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    /// Default `Newest`.
    #[serde(default)]
    pub order: DeletionOrder,
}

/// The order of deletion, after marked and sick machines.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum DeletionOrder {
    /// The youngest first.
    #[default]
    Newest,
    /// The oldest first.
    Oldest,
}

/// How many Hosts a set needs, and how many of those that match are free.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostSupply {
    /// Machines of the set that look for a Host.
    #[serde(default)]
    pub needs: i32,
    /// Hosts that match and can be claimed.
    #[serde(default)]
    pub free: i32,
    /// Why others that match cannot be taken, while too few are free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub why: Option<String>,
}

impl HostSupply {
    /// Whether there is a Host for each Machine that looks for one.
    pub fn is_enough(&self) -> bool {
        self.free >= self.needs
    }

    /// `needs 3, 2 free match`.
    pub fn counts(&self) -> String {
        format!("needs {}, {} free match", self.needs, self.free)
    }
}

/// How far the set is.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Label selector of the set's machines, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub selector: Option<String>,
    /// One sentence: what it is doing or waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// Machines that exist and are not being deleted, without those of MachineRequests.
    #[serde(default)]
    pub replicas: i32,
    /// Machines of MachineRequests for the set that exist and are not being deleted. They are beside `replicas`: no
    /// scaling of the set makes or deletes them.
    #[serde(default)]
    pub requested_replicas: i32,
    /// Machines that are Ready.
    #[serde(default)]
    pub ready_replicas: i32,
    /// Machines that have been Ready for `minReadySeconds`.
    #[serde(default)]
    pub available_replicas: i32,
    /// Machines at the template's version.
    #[serde(default)]
    pub updated_replicas: i32,
    /// What the pool has for those Machines that look for a Host; absent while none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_supply: Option<HostSupply>,
    /// `Ready`, `MachinesReady`, `ScalingUp`, `ScalingDown`, `HostsAvailable`, `UpToDate`; `Reconciling` or `Stalled`
    /// only while it is so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
