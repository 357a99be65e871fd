//! Machine: one Host's membership of one cluster.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::certificates::CertificateSeen;
use crate::drift::DriftSeen;
use crate::node_metadata::{self, AnnotationValue, LabelValue, Taint};
use crate::placement::{HostNames, HostSelector, SpreadKeys};
use crate::references::LocalRef;
use crate::step::Role;
use crate::{ClusterKind, FormerRef, KubernetesVersion};

/// One Host's membership of one cluster.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "clusterwright.dev",
    version = "v1alpha1",
    kind = "Machine",
    plural = "machines",
    shortname = "ma",
    category = "clusterwright",
    namespaced,
    status = "MachineStatus",
    derive = "PartialEq",
    doc = "One Host's membership of one cluster.",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterName"),
    printcolumn(name = "Role", type_ = "string", json_path = ".spec.role"),
    printcolumn(name = "Host", type_ = "string", json_path = ".spec.hostRef.name"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.kubernetesVersion"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.nodeName", priority = 1),
    printcolumn(name = "Address", type_ = "string", json_path = ".status.addresses[0]", priority = 1),
    printcolumn(name = "Etcd-Member", type_ = "string", json_path = ".status.etcdMemberID", priority = 1),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63")
        .message("metadata.name: a Machine's name is an RFC 1123 label that begins with a letter, of at most 63 characters"),
    selectable = ".spec.clusterName",
    selectable = ".spec.clusterKind"
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.clusterName == oldSelf.clusterName && self.clusterKind == oldSelf.clusterKind && self.role == oldSelf.role")
    .message("Forbidden: clusterName, clusterKind and role are immutable"))]
#[x_kube(validation = Rule::new("self.clusterKind != 'KarmadaDeployment' || self.role in ['control-plane', 'etcd']")
    .message("role: a machine of a KarmadaDeployment is control-plane or etcd; workers are of ClusterDeployments")
    .field_path(".role"))]
#[x_kube(validation = Rule::new("self.clusterKind != 'KarmadaDeployment' || !(has(self.kubernetesVersion) || has(self.labels) || has(self.annotations) || has(self.taints) || has(self.drainFor))")
    .message("kubernetesVersion, labels, annotations, taints and drainFor are of Nodes, and a machine of a KarmadaDeployment is none: leave them out"))]
#[x_kube(validation = Rule::new("!has(oldSelf.hostRef) || (has(self.hostRef) && self.hostRef == oldSelf.hostRef)")
    .message("Forbidden: hostRef is set once; delete the Machine to give its Host back")
    .field_path(".hostRef"))]
pub struct MachineSpec {
    /// What it belongs to: the ClusterDeployment of this name, or what `clusterKind` says.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub cluster_name: String,
    /// The kind of the object that `clusterName` names. Immutable. Default `ClusterDeployment`.
    #[serde(default, skip_serializing_if = "ClusterKind::is_default")]
    #[schemars(extend("default" = "ClusterDeployment"))]
    pub cluster_kind: ClusterKind,
    /// What it is.
    pub role: Role,
    /// Its Host, set once; by the operator, or by a platform that names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ref: Option<LocalRef>,
    /// Which Hosts may be taken, by labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_selector: Option<HostSelector>,
    /// Which Hosts may be taken, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub hosts: Option<HostNames>,
    /// Keys of Host labels over whose values the set's machines are spread.
    #[serde(default, skip_serializing_if = "SpreadKeys::is_empty")]
    pub spread_by: SpreadKeys,
    /// Kubernetes version wanted, without `v`. Default: that of its ClusterDeployment, whatever it becomes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<KubernetesVersion>,
    /// Labels of the node; those of a Machine of a set follow its template.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "node_metadata::labels")]
    pub labels: BTreeMap<String, LabelValue>,
    /// Annotations of the node; those of a Machine of a set follow its template.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "node_metadata::annotations")]
    pub annotations: BTreeMap<String, AnnotationValue>,
    /// Taints of the node; those of a Machine of a set follow its template.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "node_metadata::taints")]
    pub taints: Vec<Taint>,
    /// What its Node is drained for: it takes no new Pods, and the eviction API moves those that it has, for as long as
    /// PodDisruptionBudgets ask. Empty: it takes Pods again. A removal drains by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub drain_for: Vec<DrainReason>,
}

impl MachineSpec {
    /// What it belongs to.
    pub fn former(&self) -> FormerRef<'_> {
        FormerRef { kind: self.cluster_kind, name: &self.cluster_name }
    }
}

/// What the Node of a machine is drained for.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum DrainReason {
    /// Written by the operator, which takes it back: the machine is brought to the next minor of Kubernetes.
    Upgrade,
    /// Somebody works on the machine. Its Node may be out of order meanwhile: the machine is not repaired.
    Maintenance,
    /// Written by the operator, which takes it back: the machine is given a configuration that its Pods would not
    /// outlive.
    Configuration,
}

/// Where a Machine is in its life; for people.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum MachinePhase {
    /// Nothing has begun.
    Pending,
    /// Looks for a Host.
    Claiming,
    /// A run works on it, or is about to.
    Provisioning,
    /// Part of the cluster.
    Running,
    /// Part of the cluster, and its node is not Ready.
    Unhealthy,
    /// Its Pods are moved away.
    Draining,
    /// Its Host is cleaned and given back.
    Deleting,
    /// A run failed, and nothing is tried again by itself.
    Failed,
}

/// The last run that worked on the machine.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastRun {
    /// Name of the PlaybookRun.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Its outcome for this machine: `Succeeded`, `Failed`, `Unreachable`.
    #[schemars(length(max = 32))]
    pub outcome: String,
    /// What went wrong on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
}

/// A Pod whose eviction was refused.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockedPod {
    /// Its namespace.
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Its UID.
    #[schemars(length(max = 64))]
    pub uid: String,
    /// Names of the PodDisruptionBudgets that do not allow it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 253)))]
    pub budgets: Vec<String>,
    /// What the API server answered, if it was no budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub message: Option<String>,
}

/// Which of the settings that can be edited later runs have brought to a machine: digests, but for versions, compared
/// with what is wanted now. An absent one is not known.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedSettings {
    /// Token of the last run that was taken into account.
    #[serde(default)]
    pub token: i64,
    /// Of `controlPlane.certSANs`; on control planes.
    #[serde(default, rename = "certSANs", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub cert_sans: Option<String>,
    /// Of `containerRuntime.registryMirrors`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub registry_mirrors: Option<String>,
    /// Of the API servers that it sends clients to; where the control planes hold the endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub load_balancer_backends: Option<String>,
    /// Of `etcd.endpoints`; on control planes whose etcd is external.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub etcd_endpoints: Option<String>,
    /// Of the certificates in the Secret of `etcd.secretRef`; on control planes whose etcd is external.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub etcd_client: Option<String>,
    /// The Kubernetes version to which all steps have brought it, e.g. `1.35.4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub kubernetes_version: Option<String>,
    /// The Kubernetes version whose programs and images lie ready on it, e.g. `1.36.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub prefetched_version: Option<String>,
    /// When that was brought, and preflight of the upgrade had found nothing on the machine that blocks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetched_at: Option<Time>,
    /// Of each part of `spec.configuration` that runs brought to it, e.g. `kubelet`. An absent one is as it is by
    /// itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub configuration: BTreeMap<String, String>,
    /// Of each authority and key of its cluster that it has, e.g. `ca`: whether the old and the new one are trusted,
    /// the one that signs, and those that are trusted, as `settled.<digest>.<digest>`, `trust.<...>`, `sign.<...>`.
    /// Beside them a digest of what its Pods trust (`pods`), and of the key that it has seen all Secrets in etcd
    /// encrypted with (`stored-secrets`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub authorities: BTreeMap<String, String>,
    /// Of each part of a Karmada control plane that runs brought to it, e.g. `scheduler`: its version, and a digest of
    /// its flags and of the files that these name. An absent one was not brought, or taken off.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub parts: BTreeMap<String, String>,
}

/// A part of a Karmada control plane as it was found on a machine.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachinePart {
    /// E.g. `scheduler`, `balancer`, `estimators`.
    #[schemars(length(max = 63))]
    pub name: String,
    /// The digest that its unit carries. Absent: there is no unit of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub digest: Option<String>,
    /// Whether its unit is active and its health check answers.
    #[serde(default)]
    pub healthy: bool,
    /// What is wrong, or what the health check answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub message: Option<String>,
    /// Of `estimators`: those that do not work, by the names of their members, and why; at most 256.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    pub members: BTreeMap<String, String>,
    /// When it was looked at.
    pub last_probe_time: Time,
}

/// What was observed of the machine in its cluster.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// For people; no controller decides by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<MachinePhase>,
    /// One sentence: what it is doing, what it waits for, or what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// Name of its Node; absent for dedicated etcd machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub node_name: Option<String>,
    /// Addresses of its Node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 253)))]
    pub addresses: Vec<String>,
    /// Version of its kubelet, without `v`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub kubernetes_version: Option<String>,
    /// ID of its member of etcd, hexadecimal as etcdctl shows it, as its machine has told; absent on machines without
    /// etcd, and once the member is taken out.
    #[serde(default, rename = "etcdMemberID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub etcd_member_id: Option<String>,
    /// The earliest end of a certificate of the machine that somebody verifies. Absent: not known yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificates_expire_at: Option<Time>,
    /// Its certificates as they were when it was asked last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub certificates: Vec<CertificateSeen>,
    /// When it was asked for them last and answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificates_seen_at: Option<Time>,
    /// When the run that made it a part of its cluster succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned_at: Option<Time>,
    /// The settings that runs have brought to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<AppliedSettings>,
    /// The parts of a Karmada control plane as they were found when it was looked at last; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub parts: Vec<MachinePart>,
    /// Taints that its kubelet registers a Node with, as `key:Effect`: those of its spec until it was provisioned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 340)))]
    pub registered_taints: Vec<String>,
    /// What was found when it was compared last with what its cluster wants. Absent: it was not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftSeen>,
    /// The last run that worked on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// While its node is drained: Pods whose eviction was refused when it was asked for last, the first five.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub blocked_pods: Vec<BlockedPod>,
    /// `Ready`, `HostClaimed`, `Provisioned`, `NodeReady`, `Healthy`, `UpToDate`, `Drifted`, `Drained`, `Deleting`,
    /// `HooksPlayed`; `Reconciling` or `Stalled` only while it is so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
