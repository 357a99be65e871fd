//! A plane on machines: which Hosts carry it, how its API is reached, and what its runs are played by.

use kube::KubeSchema;
use kube::core::{Message, Rule};
use serde::{Deserialize, Serialize};

use crate::cluster_deployment::{Artifacts, EtcdTopology, Executor};
use crate::networking::Endpoint;
use crate::placement::{HostNames, HostSelector};

/// CEL: the field and the mode come together.
pub(super) const MODE_RULE: &str = "(self.mode == 'Binary') == has(self.binary)";
pub(super) const MODE_MESSAGE: &str = "binary is required with mode Binary, and goes with no other mode: it says which Hosts carry the plane, e.g. binary: {controlPlane: {replicas: 1}, artifacts: {url: https://artifacts.example.com/bundle}}";
/// CEL: there is no host cluster.
pub(super) const HOST_RULE: &str = "self.mode != 'Binary' || (!has(self.hostClusterRef) && self.hostNamespace == 'karmada-system' && self.hostDNSDomain == 'cluster.local')";
pub(super) const HOST_MESSAGE: &str = "hostClusterRef, hostNamespace and hostDNSDomain are of a host cluster, which a plane with mode Binary has not: leave them out, and name its Hosts in binary.controlPlane";
/// CEL: Karmada's own images are those of agents in members.
pub(super) const IMAGES_RULE: &str = "self.mode != 'Binary' || self.images.kubernetes == 'registry.k8s.io'";
pub(super) const IMAGES_MESSAGE: &str =
    "images.kubernetes: with mode Binary the programs of Kubernetes and etcd come from binary.artifacts: leave it out";
/// CEL: etcd's members are on machines.
pub(super) const ETCD_LOCAL_RULE: &str = "self.mode != 'Binary' || !has(self.etcd) || !has(self.etcd.local)";
pub(super) const ETCD_LOCAL_MESSAGE: &str = "etcd.local (its storage, replicas and Pods) is an etcd on a host cluster: with mode Binary leave it out; binary.etcd says on which machines etcd is, and without that it is on those of binary.controlPlane";
pub(super) const ETCD_EXTERNAL_RULE: &str =
    "!has(self.binary) || !has(self.binary.etcd) || !has(self.etcd) || !has(self.etcd.external)";
pub(super) const ETCD_EXTERNAL_MESSAGE: &str =
    "binary.etcd and etcd.external exclude each other: the plane has one etcd, on its own machines or another's";
/// CEL: clients come by `binary.endpoint`.
pub(super) const SERVICE_RULE: &str = "self.mode != 'Binary' || !has(self.apiServer) || (self.apiServer.serviceType == 'ClusterIP' && !has(self.apiServer.serviceAnnotations))";
pub(super) const SERVICE_MESSAGE: &str = "apiServer.serviceType and apiServer.serviceAnnotations are of a Service on a host cluster: with mode Binary leave them out, and give binary.endpoint, at which the plane is reached";

/// Refuses what only Pods of a component have.
pub(super) fn no_pods(field: &str) -> Rule {
    let pod = ["affinity", "annotations", "labels", "priorityClassName", "tolerations"];
    let absent: Vec<String> = pod.iter().map(|name| format!("!has(self.{field}.{name})")).collect();
    let resources = format!(
        "(!has(self.{field}.resources) || (!has(self.{field}.resources.requests) && !has(self.{field}.resources.limits)))"
    );
    let message =
        format!("{field}: {} and resources are of Pods, which mode Binary has none of: leave them out", pod.join(", "));
    let rule = format!("self.mode != 'Binary' || !has(self.{field}) || ({} && {resources})", absent.join(" && "));
    Rule::new(rule).message(Message::Message(message))
}

/// Refuses a count of Pods.
pub(super) fn no_replicas(field: &str) -> Rule {
    let message = format!(
        "{field}.replicas: with mode Binary each machine of binary.controlPlane has one: leave it out, and set binary.controlPlane.replicas"
    );
    let rule = format!("self.mode != 'Binary' || !has(self.{field}) || self.{field}.replicas == 1");
    Rule::new(rule).message(Message::Message(message))
}

/// CEL: no Host by name in two roles.
const ROLES_RULE: &str = "!has(self.etcd) || !has(self.etcd.hosts) || !has(self.controlPlane.hosts) || !self.etcd.hosts.exists(h, h in self.controlPlane.hosts)";
const ROLES_MESSAGE: &str =
    "a Host can have one role only: a name is in binary.controlPlane.hosts or in binary.etcd.hosts";
const REACHED_RULE: &str = "self.controlPlane.replicas == 1 || has(self.endpoint)";
const REACHED_MESSAGE: &str = "binary.endpoint is required with more than one machine: give the address of the load balancer (or DNS name) before the API servers; it cannot be added later, so a plane that may grow needs it from the start";
const ENDPOINT_RULE: &str =
    "has(self.endpoint) == has(oldSelf.endpoint) && (!has(self.endpoint) || self.endpoint == oldSelf.endpoint)";
const ENDPOINT_MESSAGE: &str = "Forbidden: binary.endpoint is immutable: it stands in the certificates, in every kubeconfig, and in what members know of the plane";
const TOPOLOGY_RULE: &str =
    "(has(self.etcd) ? self.etcd.topology : 'Stacked') == (has(oldSelf.etcd) ? oldSelf.etcd.topology : 'Stacked')";
const TOPOLOGY_MESSAGE: &str =
    "Forbidden: binary.etcd.topology is immutable; make another KarmadaDeployment for another topology";
const BUNDLE_RULE: &str = "has(self.artifacts.url)";
const BUNDLE_MESSAGE: &str = "binary.artifacts.url is required: upstream publishes Karmada's programs in images only; give the URL of an artifact bundle that has them";
const PLAYBOOKS_RULE: &str = "!has(self.executor) || !has(self.executor.customPlaybooksRef)";
const PLAYBOOKS_MESSAGE: &str =
    "binary.executor.customPlaybooksRef is for hooks, which a plane has none of: leave it out";
const ONE_WAY_RULE: &str = "!(has(self.hosts) && has(self.hostSelector))";
const ONE_WAY_MESSAGE: &str = "hosts and hostSelector exclude each other: name the Hosts, or select them by labels";

/// A plane on machines.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(ROLES_RULE).message(ROLES_MESSAGE))]
#[x_kube(validation = Rule::new(REACHED_RULE).message(REACHED_MESSAGE))]
#[x_kube(validation = Rule::new(ENDPOINT_RULE).message(ENDPOINT_MESSAGE))]
#[x_kube(validation = Rule::new(TOPOLOGY_RULE).message(TOPOLOGY_MESSAGE))]
#[x_kube(validation = Rule::new(BUNDLE_RULE).message(BUNDLE_MESSAGE).field_path(".artifacts"))]
#[x_kube(validation = Rule::new(PLAYBOOKS_RULE).message(PLAYBOOKS_MESSAGE))]
pub struct PlaneBinary {
    /// The machines that have all components.
    pub control_plane: PlaneMachines,
    /// The plane's etcd. Absent: a member on each machine of `controlPlane`. Not with `etcd.external`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<PlaneEtcdMachines>,
    /// Where clients and members reach the plane's API servers. Immutable. Absent with one machine: that machine
    /// itself; such a plane can neither grow nor have its machine replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
    /// The executor of the plane's runs; without `customPlaybooksRef`, since a plane has no hooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Executor>,
    /// The bundle that programs come from: those of Karmada, Kubernetes' API server and controller manager, etcd.
    pub artifacts: Artifacts,
    /// After how long a machine that leaves and cannot be reached is forgotten without cleaning it, in seconds, 60 to
    /// 604800; its Host is quarantined. Absent: never by itself (annotation `force-remove` on the Machine).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 604800))]
    pub force_remove_after_seconds: Option<i32>,
}

/// Machines of a plane, each with all of its components.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(ONE_WAY_RULE).message(ONE_WAY_MESSAGE))]
pub struct PlaneMachines {
    /// How many: 1, 3 or 5.
    #[schemars(range(min = 1, max = 5))]
    #[x_kube(validation = Rule::new("self % 2 == 1").message("must be 1, 3 or 5, since etcd needs a majority"))]
    pub replicas: i32,
    /// Which Hosts may be taken: those with these labels. Absent, with `hosts` absent too: any spare Host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_selector: Option<HostSelector>,
    /// Which Hosts may be taken, by name; at most 16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub hosts: Option<HostNames>,
}

/// The machines of a plane's etcd.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.topology != 'External'")
    .message("binary.etcd.topology: Stacked or Dedicated; an etcd that others run is given in etcd.external, without binary.etcd"))]
#[x_kube(validation = Rule::new("(self.topology == 'Dedicated') == has(self.replicas)")
    .message("binary.etcd.replicas goes with topology Dedicated, and only with it (1, 3 or 5)"))]
#[x_kube(validation = Rule::new("self.topology == 'Dedicated' || !(has(self.hosts) || has(self.hostSelector))")
    .message("hosts and hostSelector of binary.etcd go with topology Dedicated"))]
#[x_kube(validation = Rule::new(ONE_WAY_RULE).message(ONE_WAY_MESSAGE))]
pub struct PlaneEtcdMachines {
    /// `Stacked`, on the machines of `controlPlane`, or `Dedicated`, on machines of its own. Immutable. Default
    /// `Stacked`.
    #[serde(default)]
    pub topology: EtcdTopology,
    /// With `Dedicated`: how many members, 1, 3 or 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 5))]
    #[x_kube(validation = Rule::new("self % 2 == 1").message("must be 1, 3 or 5, since etcd needs a majority"))]
    pub replicas: Option<i32>,
    /// Which Hosts may be taken, by labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_selector: Option<HostSelector>,
    /// Which Hosts may be taken, by name; at most 16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub hosts: Option<HostNames>,
}

impl super::KarmadaDeploymentSpec {
    /// Where etcd of a plane on machines is.
    pub fn etcd_topology(&self) -> EtcdTopology {
        let own = self.binary.as_ref().and_then(|binary| binary.etcd.as_ref());
        match &self.etcd.external {
            Some(_) => EtcdTopology::External,
            None => own.map(|etcd| etcd.topology).unwrap_or_default(),
        }
    }
}
