//! ClusterDeployment: the cluster wanted; how far it is stands in [`ClusterDeploymentStatus`].

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::KubernetesVersion;
use crate::configuration::{self, Configuration, KubeProxyMode, KubeletSettings};
use crate::drift::Drift;
use crate::lock::LockView;
use crate::names;
use crate::networking::{Endpoint, Networking};
use crate::node_metadata::{self, AnnotationValue, LabelValue, Taint};
use crate::object::ObjectExt;
use crate::placement::{HostNames, HostSelector, WorkerSet};
use crate::references::LocalRef;
use crate::remediation_policy::Remediation;

mod artifacts;
mod certificates;
mod container_runtime;
mod encryption;
mod etcd;
mod etcd_status;
mod executor;
mod hooks;
mod leaving;
mod planned;
mod preflight;
mod restore_from;
mod rollout;
mod status;
mod upgrade_path;
mod versions;

pub use artifacts::{Artifacts, OsPackages};
pub use certificates::Certificates;
pub use container_runtime::{ContainerRuntime, ContainerRuntimeName, RegistryMirror};
pub use encryption::{EncryptedResource, Encryption, EncryptionProvider, KmsPlugin};
pub(crate) use etcd::ENDPOINTS_RULE;
pub use etcd::{Defragmentation, ETCD_PREFIX, Etcd, EtcdTopology};
pub use etcd_status::{EtcdDefragmentation, EtcdHashCheck, EtcdMember, EtcdStatus};
pub use executor::{Executor, ExecutorPod, PodToleration, TolerationOperator};
pub use hooks::{Hook, Hooks, ReadinessGate};
pub use leaving::{DeletionPolicy, FenceReturned, MachineRemoval, Recovery, RecoveryStrategy};
pub use planned::{PlannedChange, PlannedOperation, RolloutPlan};
pub use preflight::Preflight;
pub use restore_from::{RestoreFrom, RestoredFrom};
pub use rollout::{Approval, MaintenanceWindow, Rollout};
pub use status::{
    AppliedManifests, ClusterDeploymentStatus, ControlPlaneEndpoint, ForgottenMachine, Repair, ReplicaCounts,
};
pub use upgrade_path::UpgradePath;
pub use versions::Versions;

/// CEL: no Host by name in two roles.
const HOSTS_RULE: &str = "(!has(self.controlPlane.hosts) || (!has(self.workers) || self.workers.all(w, !has(w.hosts) || !w.hosts.exists(h, h in self.controlPlane.hosts)))) && (!has(self.etcd.hosts) || ((!has(self.workers) || self.workers.all(w, !has(w.hosts) || !w.hosts.exists(h, h in self.etcd.hosts))) && (!has(self.controlPlane.hosts) || !self.etcd.hosts.exists(h, h in self.controlPlane.hosts))))";
/// CEL: each node has a /24 of the Pods' network.
const POD_CIDR_SIZE_RULE: &str = "!isCIDR(self.networking.podCIDR) || cidr(self.networking.podCIDR).prefixLength() < 8 || cidr(self.networking.podCIDR).prefixLength() > 24 || self.controlPlane.replicas + (has(self.workers) ? self.workers.map(w, has(w.replicas) ? w.replicas : 0).sum() : 0) <= [65536, 32768, 16384, 8192, 4096, 2048, 1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1][cidr(self.networking.podCIDR).prefixLength() - 8]";
/// CEL: the endpoint is no Pod and no Service.
const ENDPOINT_RULE: &str = "!has(self.controlPlane.endpoint) || !isIP(self.controlPlane.endpoint.host) || !isCIDR(self.networking.podCIDR) || !isCIDR(self.networking.serviceCIDR) || !(cidr(self.networking.podCIDR).containsIP(self.controlPlane.endpoint.host) || cidr(self.networking.serviceCIDR).containsIP(self.controlPlane.endpoint.host))";

/// CEL: the version whose rollout has begun, or, while none has been recorded, the one that was wanted before.
macro_rules! version_from {
    () => {
        "(has(oldSelf.status) && has(oldSelf.status.startedKubernetesVersion) ? oldSelf.status.startedKubernetesVersion : oldSelf.spec.kubernetesVersion)"
    };
}
/// CEL: a wish that no machine has followed yet may be taken back, so what counts is how far it is from the version
/// whose rollout has begun, and whether there is a version of each minor between. An unchanged field passes whatever
/// the status says: a status can be written in any case.
const VERSION_RULE: &str = concat!(
    "self.spec.kubernetesVersion == oldSelf.spec.kubernetesVersion || [",
    version_from!(),
    "].all(from, (int(self.spec.kubernetesVersion.split('.')[1]) - int(from.split('.')[1]) in [0, 1] || (int(self.spec.kubernetesVersion.split('.')[1]) > int(from.split('.')[1]) && has(self.spec.upgradePath) && has(self.spec.upgradePath.via) && self.spec.upgradePath.via.filter(v, int(v.split('.')[1]) > int(from.split('.')[1]) && int(v.split('.')[1]) < int(self.spec.kubernetesVersion.split('.')[1])).size() == int(self.spec.kubernetesVersion.split('.')[1]) - int(from.split('.')[1]) - 1)) && (self.spec.kubernetesVersion.split('.')[1] != from.split('.')[1] || int(self.spec.kubernetesVersion.split('.')[2]) >= int(from.split('.')[2])))"
);
const VERSION_MESSAGE: &str = concat!(
    "'VersionSkewNotAllowed: from ' + ",
    version_from!(),
    " + ' to ' + self.spec.kubernetesVersion + '; allowed are the version itself, later patches of the same minor, the next minor, and a later one with a version of each minor between in spec.upgradePath.via'"
);

/// CEL: hooks have playbooks to name.
const HOOKS_RULE: &str = "!has(self.hooks) || (has(self.executor) && has(self.executor.customPlaybooksRef))";

/// The cluster wanted.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[kube(
    group = "clusterwright.dev",
    version = "v1alpha1",
    kind = "ClusterDeployment",
    plural = "clusterdeployments",
    shortname = "cd",
    category = "clusterwright",
    namespaced,
    status = "ClusterDeploymentStatus",
    derive = "PartialEq",
    doc = "A Kubernetes cluster wanted on Hosts of this namespace.",
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.kubernetesVersion"),
    printcolumn(name = "Control-Plane", type_ = "string", json_path = ".status.controlPlane.summary"),
    printcolumn(name = "Workers", type_ = "string", json_path = ".status.workers.summary"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 32")
        .message("metadata.name: a ClusterDeployment's name is an RFC 1123 label that begins with a letter, of at most 32 characters: the names of machines, runs and Jobs derive from it"),
    validation = Rule::new(VERSION_RULE)
        .message(Message::Expression(VERSION_MESSAGE.into()))
        .field_path(".spec.kubernetesVersion")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.controlPlane.replicas == 1 || has(self.controlPlane.endpoint)")
    .message("controlPlane.endpoint is required with more than one control plane: give the address of the load balancer (or DNS name) before the API servers; it cannot be added later, so a cluster that may grow needs it from the start"))]
#[x_kube(validation = Rule::new(HOSTS_RULE)
    .message("a Host can have one role only: a name stands in the hosts of the control plane, of etcd or of a set of workers"))]
#[x_kube(validation = Rule::new(POD_CIDR_SIZE_RULE)
    .message("CIDRTooSmall: networking.podCIDR has a /24 for each node, and holds fewer than there are replicas; choose a shorter prefix")
    .field_path(".networking.podCIDR"))]
#[x_kube(validation = Rule::new(ENDPOINT_RULE)
    .message("controlPlane.endpoint.host lies in podCIDR or serviceCIDR: give an address of the machines' network")
    .field_path(".controlPlane.endpoint.host"))]
#[x_kube(validation = Rule::new(HOOKS_RULE)
    .message("executor.customPlaybooksRef is required with hooks: name the ConfigMap that holds their playbooks")
    .field_path(".executor"))]
#[x_kube(validation = Rule::new("self.networking == oldSelf.networking")
    .message("Forbidden: networking (podCIDR, serviceCIDR, dnsDomain, plugin) is immutable; make a new cluster for other networks")
    .field_path(".networking"))]
#[x_kube(validation = Rule::new("self.etcd.topology == oldSelf.etcd.topology")
    .message("Forbidden: etcd.topology is immutable; make a new cluster for another topology")
    .field_path(".etcd.topology"))]
#[x_kube(validation = Rule::new("(has(self.etcd.prefix) ? self.etcd.prefix : '/registry') == (has(oldSelf.etcd.prefix) ? oldSelf.etcd.prefix : '/registry')")
    .message("Forbidden: etcd.prefix is immutable: the cluster's data is below it; make a new cluster for another prefix")
    .field_path(".etcd"))]
#[x_kube(validation = Rule::new("self.containerRuntime.name == oldSelf.containerRuntime.name")
    .message("Forbidden: containerRuntime.name is immutable; make a new cluster for another container runtime")
    .field_path(".containerRuntime.name"))]
#[x_kube(validation = Rule::new("has(self.controlPlane.endpoint) == has(oldSelf.controlPlane.endpoint) && (!has(self.controlPlane.endpoint) || self.controlPlane.endpoint == oldSelf.controlPlane.endpoint)")
    .message("Forbidden: controlPlane.endpoint is immutable: it stands in the certificates and in every kubeconfig")
    .field_path(".controlPlane"))]
#[x_kube(validation = Rule::new("has(self.restoreFrom) == has(oldSelf.restoreFrom) && (!has(self.restoreFrom) || self.restoreFrom == oldSelf.restoreFrom)")
    .message("Forbidden: restoreFrom is immutable: a cluster begins with a backup, or without; to set one back to a backup, make an EtcdRestore")
    .field_path(".restoreFrom"))]
#[x_kube(validation = Rule::new("!has(self.configuration) || !has(self.configuration.etcd) || self.etcd.topology != 'External'")
    .message("configuration.etcd is of an etcd on the cluster's machines: an external one is configured by its administrator")
    .field_path(".configuration.etcd"))]
#[x_kube(validation = Rule::new(configuration::PLUGIN_RULE)
    .message(configuration::PLUGIN_MESSAGE)
    .field_path(".configuration.kubeProxy.mode"))]
#[x_kube(validation = Rule::new(configuration::TO_NONE_RULE)
    .message(configuration::TO_NONE_MESSAGE)
    .field_path(".configuration.kubeProxy.mode"))]
#[x_kube(validation = Rule::new(configuration::FROM_NONE_RULE)
    .message(configuration::FROM_NONE_MESSAGE)
    .field_path(".configuration.kubeProxy.mode"))]
#[x_kube(validation = Rule::new("!has(self.versions) || !has(self.versions.etcd) || self.etcd.topology != 'External'")
    .message("versions.etcd is of an etcd on the cluster's machines: an external one is upgraded by its administrator; leave versions.etcd out")
    .field_path(".versions.etcd"))]
#[x_kube(validation = Rule::new("!has(self.restoreFrom) || self.etcd.topology != 'External'")
    .message("restoreFrom is for an etcd of the cluster's own machines: whoever runs the external etcd restores it; leave restoreFrom out")
    .field_path(".restoreFrom"))]
#[x_kube(validation = Rule::new("self.recovery.strategy != 'RestoreLatest' || self.etcd.topology != 'External'")
    .message("RestoreLatest is for an etcd of the cluster's own machines; with an external etcd, Rebuild keeps what that holds")
    .field_path(".recovery.strategy"))]
pub struct ClusterDeploymentSpec {
    /// Kubernetes version without `v`, e.g. `1.35.4`; the minors 1.34, 1.35 and 1.36. A change may be taken back until
    /// its rollout begins: it is compared with `status.startedKubernetesVersion`.
    #[x_kube(validation = Rule::new("self.matches('^1[.](34|35|36)[.](0|[1-9][0-9]?)$')")
        .message(Message::Expression("'UnsupportedVersion: ' + self + '; supported are 1.34.x, 1.35.x and 1.36.x, written without v, e.g. 1.35.4'".into())))]
    pub kubernetes_version: KubernetesVersion,
    /// The way to a version that is more than one minor away.
    #[serde(default)]
    pub upgrade_path: UpgradePath,
    /// Versions of components that go before those of the artifact bundle's table. Absent: those of the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<Versions>,
    /// The control plane.
    pub control_plane: ControlPlane,
    /// etcd. Default: stacked on the control planes.
    #[serde(default)]
    pub etcd: Etcd,
    /// How long certificates last, when they are renewed, and whose authorities sign them.
    #[serde(default)]
    pub certificates: Certificates,
    /// What is encrypted before etcd stores it, and by what. Absent: Secrets, by `Secretbox`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<Encryption>,
    /// Sets of workers, by name; at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub workers: Vec<WorkerSet>,
    /// Networks and the network plugin.
    #[serde(default)]
    pub networking: Networking,
    /// The container runtime.
    #[serde(default)]
    pub container_runtime: ContainerRuntime,
    /// How control plane, etcd, kubelet, containerd and operating system of the machines are configured. Absent: as
    /// they are by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Configuration>,
    /// Where programs and images come from. Absent: upstream's own servers, as with an empty object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Artifacts>,
    /// Manifests that the cluster is to have: they become the Addon `<name>-addons`, which keeps them as they are
    /// wanted. Without this field that Addon is deleted, and its objects with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addons: Option<Addons>,
    /// The executor of this cluster's runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Executor>,
    /// How preflight judges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preflight: Option<Preflight>,
    /// True: the current step ends, nothing more starts. Default false.
    #[serde(default)]
    pub paused: bool,
    /// Whether what is changed waits for a person before it disrupts a machine. Default `Automatic`.
    #[serde(default)]
    pub approval: Approval,
    /// When, and how fast, what is changed reaches the machines.
    #[serde(default)]
    pub rollout: Rollout,
    /// How often machines are compared with what is wanted, and what is done about those that differ. Absent: once a
    /// day, and nothing is done by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
    /// What deletion does with the machines. Default `Reset`.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// True: a deletion is refused unless the annotation `delete-confirmed` names the generation. Default false.
    #[serde(default)]
    pub deletion_protection: bool,
    /// How machines leave while the cluster goes on.
    #[serde(default)]
    pub machine_removal: MachineRemoval,
    /// How sick machines that no RemediationPolicy selects are repaired. Absent: they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<Remediation>,
    /// What is done when all machines are lost.
    #[serde(default)]
    pub recovery: Recovery,
    /// The backup that the cluster begins with: its data and its keys. Only when it is made. Absent: it begins empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_from: Option<RestoreFrom>,
    /// Custom playbooks before and after what is done to machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Hooks>,
    /// Conditions of this object that other controllers set, and that `Ready` waits for; at most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["conditionType".into()]))]
    pub readiness_gates: Vec<ReadinessGate>,
}

/// The control plane wanted.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!(has(self.hosts) && has(self.hostSelector))")
    .message("hosts and hostSelector exclude each other: name the Hosts, or select them by labels"))]
pub struct ControlPlane {
    /// How many: 1, 3, 5 or 7.
    #[schemars(range(min = 1, max = 7))]
    #[x_kube(validation = Rule::new("self % 2 == 1").message("must be odd: 1, 3, 5 or 7, since etcd needs a majority"))]
    pub replicas: i32,
    /// Which Hosts may be taken: those with these labels. Absent, with `hosts` absent too: any spare Host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_selector: Option<HostSelector>,
    /// Which Hosts may be taken, by name; at most 16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub hosts: Option<HostNames>,
    /// Where clients reach the API servers. Absent with one replica: the machine itself; such a cluster can neither
    /// grow nor have its control plane replaced, since this cannot be added later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
    /// More names and addresses in the API servers' certificate; at most 32.
    #[serde(default, rename = "certSANs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        inner(length(min = 1, max = 253), regex(pattern = r"^(\*\.)?[A-Za-z0-9][-A-Za-z0-9.:]*$"))
    )]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub cert_sans: Vec<String>,
    /// Labels of the control planes' Nodes; at most 64, as `workers[].labels`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "node_metadata::labels")]
    pub labels: BTreeMap<String, LabelValue>,
    /// Annotations of the control planes' Nodes; at most 32, as `workers[].annotations`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "node_metadata::annotations")]
    pub annotations: BTreeMap<String, AnnotationValue>,
    /// Taints of the control planes' Nodes beside `node-role.kubernetes.io/control-plane`; at most 32, as
    /// `workers[].taints`. CoreDNS does not tolerate them: where all control planes have one, it needs a worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "node_metadata::taints")]
    pub taints: Vec<Taint>,
    /// What is different on the kubelets of the control planes from `configuration.kubelet`, field by field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<KubeletSettings>,
}

impl ClusterDeploymentSpec {
    /// The ConfigMap of `addons.manifestsRef`.
    pub fn addon_manifests(&self) -> Option<&LocalRef> {
        self.addons.as_ref()?.manifests_ref.as_ref()
    }

    /// URL of the artifact bundle, without a slash at its end; none: machines take what they need from upstream.
    pub fn bundle_url(&self) -> Option<&str> {
        let url = self.artifacts.as_ref()?.url.as_deref()?;
        Some(url.trim_end_matches('/'))
    }

    /// Whether kube-proxy serves Services; else the network plugin does.
    pub fn has_kube_proxy(&self) -> bool {
        let settings = self.configuration.as_ref().and_then(|configuration| configuration.kube_proxy.as_ref());
        settings.and_then(|settings| settings.mode) != Some(KubeProxyMode::None)
    }
}

impl ClusterDeployment {
    /// Its lock; nobody holds it where there is no status.
    pub fn lock(&self) -> LockView<'_> {
        let operations = self.status.as_ref().map(|status| status.operations.as_slice()).unwrap_or_default();
        LockView { operations, paused: self.spec.paused }
    }

    /// Names of the MachineSets that it makes.
    pub fn set_names(&self) -> Vec<String> {
        let (spec, cluster) = (&self.spec, self.name());
        let etcd = (spec.etcd.topology == EtcdTopology::Dedicated).then(|| names::etcd_set(cluster));
        let workers = spec.workers.iter().map(|workers| names::worker_set(cluster, &workers.name));
        [names::control_plane_set(cluster)].into_iter().chain(etcd).chain(workers).collect()
    }

    /// What the spec says of the workers of this MachineSet; none: it is no set of workers of this ClusterDeployment.
    pub fn workers_of(&self, set: &str) -> Option<&WorkerSet> {
        self.spec.workers.iter().find(|workers| names::worker_set(self.name(), &workers.name) == set)
    }
}

/// Manifests that a cluster is to have.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Addons {
    /// A ConfigMap whose values are YAML manifests, rendered with the cluster's facts (docs/operations/addons.md) and
    /// applied in the order of their keys. What it has no more is pruned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifests_ref: Option<LocalRef>,
}
