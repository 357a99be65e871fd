//! Nodes: what is kept of each, and how they are counted.

use std::collections::{BTreeMap, BTreeSet};

use crds::Reason;
use crds::cluster::NodeCounts;
use crds::conditions::Statement;
use crds::names::{NODE_FIELD_MANAGER, annotation, condition, node_condition};
use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};

use super::field_owners::{FieldOwners, Owners};
use super::kept::{LONGEST_TEXT, MOST_ENTRIES, short, start};

/// What is kept of a Node: little, since there may be thousands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeSeen {
    /// Its name: the Host's.
    pub name: String,
    /// Another one with each registration.
    pub uid: String,
    /// Ready, not Ready, or unknown: its kubelet is silent.
    pub ready: Option<bool>,
    /// What its kubelet says when it is not Ready.
    pub message: String,
    /// IP addresses and host name.
    pub addresses: Vec<String>,
    /// Version of its kubelet, without `v`.
    pub kubelet_version: String,
    /// What the machine says of its Pods' network; none: nothing, or its kubelet is silent, so that it would be old.
    pub network: Option<NetworkSeen>,
    /// Whom it asks to find that out, as it was told.
    pub network_probe: String,
    /// The range of its Pods.
    pub pod_cidr: String,
    /// Conditions that are bad and hold: `MemoryPressure`, `DiskPressure`, `PIDPressure`, `NetworkUnavailable`.
    pub pressures: Vec<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations, as far as somebody applies them.
    pub annotations: BTreeMap<String, String>,
    /// Who owns its labels and annotations.
    pub owners: FieldOwners,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Those of them that are its Machine's, as `key:Effect`; none: nobody has said.
    pub own_taints: Option<BTreeSet<String>>,
    /// It is cordoned.
    pub unschedulable: bool,
    /// For writing: moves with each heartbeat.
    pub resource_version: String,
}

/// What a machine says of its Pods' network.
#[derive(Clone, Debug, PartialEq)]
pub enum NetworkSeen {
    /// They reach others, and the DNS.
    Reaches,
    /// They do not.
    CutOff {
        /// CamelCase.
        reason: Reason,
        /// What the machine says.
        message: String,
    },
}

/// The reasons, the more telling one first: without the network there is no DNS either.
const CUT_OFF: [(&str, Reason); 2] = [
    (node_condition::POD_NETWORK_UNREACHABLE, Reason::PodNetworkUnreachable),
    (node_condition::CLUSTER_DNS_UNREACHABLE, Reason::ClusterDNSUnreachable),
];

impl NetworkSeen {
    fn from_conditions(conditions: &[NodeCondition]) -> Option<Self> {
        let said = |type_: &str| conditions.iter().find(|condition| condition.type_ == type_);
        let bad = CUT_OFF.iter().find_map(|(type_, reason)| {
            let condition = said(type_).filter(|condition| condition.status == "True")?;
            Some(Self::CutOff { reason: *reason, message: short(condition.message.clone().unwrap_or_default()) })
        });
        let well = CUT_OFF.iter().any(|(type_, _)| said(type_).is_some_and(|condition| condition.status == "False"));
        bad.or(well.then_some(Self::Reaches))
    }
}

impl NodeSeen {
    /// What is kept of this Node.
    pub fn from_node(node: Node) -> Self {
        let spec = node.spec.unwrap_or_default();
        let status = node.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
        let bad = conditions
            .iter()
            .filter(|c| c.type_ != "Ready" && c.status == "True")
            .filter(|c| CUT_OFF.iter().all(|(type_, _)| *type_ != c.type_));
        let owners = FieldOwners::from_entries(node.metadata.managed_fields.unwrap_or_default());
        let mut annotations = node.metadata.annotations.unwrap_or_default();
        let own_taints = annotations.remove(annotation::TAINTS_FROM_MACHINE);
        let network_probe = annotations.remove(annotation::NETWORK_PROBE).unwrap_or_default();
        annotations.retain(|key, _| owners.annotations.contains_key(key));
        let version = status.node_info.map(|info| info.kubelet_version).unwrap_or_default();
        Self {
            name: node.metadata.name.unwrap_or_default(),
            uid: node.metadata.uid.unwrap_or_default(),
            ready: match ready.map(|ready| ready.status.as_str()) {
                Some("True") => Some(true),
                Some("False") => Some(false),
                _ => None,
            },
            network: NetworkSeen::from_conditions(&conditions)
                .filter(|_| ready.is_some_and(|ready| ready.status != Reason::Unknown)),
            network_probe,
            pod_cidr: short(spec.pod_cidr.unwrap_or_default()),
            message: short(ready.and_then(|ready| ready.message.clone()).unwrap_or_default()),
            addresses: status
                .addresses
                .unwrap_or_default()
                .into_iter()
                .take(MOST_ENTRIES)
                .map(|address| short(address.address))
                .collect(),
            kubelet_version: short(version.strip_prefix('v').unwrap_or(&version).to_owned()),
            pressures: bad.take(MOST_ENTRIES).map(|condition| short(condition.type_.clone())).collect(),
            labels: ours_first(node.metadata.labels.unwrap_or_default(), &owners.labels),
            annotations: ours_first(annotations, &owners.annotations),
            owners,
            taints: spec.taints.unwrap_or_default().into_iter().take(MOST_ENTRIES).collect(),
            own_taints: own_taints.map(|taints| names_in(&taints)),
            unschedulable: spec.unschedulable.unwrap_or_default(),
            resource_version: node.metadata.resource_version.unwrap_or_default(),
        }
    }

    /// True when nothing but its heartbeat moved.
    pub fn same_as(&self, other: &NodeSeen) -> bool {
        let other = NodeSeen { resource_version: self.resource_version.clone(), ..other.clone() };
        *self == other
    }
}

fn names_in(list: &str) -> BTreeSet<String> {
    let names = list.split(',').filter(|name| !name.is_empty());
    names.take(MOST_ENTRIES).map(|name| short(name.to_owned())).collect()
}

/// As many as are kept: those that the operator applies, then others.
fn ours_first(all: BTreeMap<String, String>, owners: &Owners) -> BTreeMap<String, String> {
    let is_ours = |key: &String| {
        let mut owners = owners.get(key).into_iter().flatten();
        owners.any(|owner| owner.applies && owner.manager == NODE_FIELD_MANAGER)
    };
    let (ours, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(key, _)| is_ours(key));
    let kept = ours.into_iter().chain(others).take(MOST_ENTRIES);
    // One character more than a value that may be wanted: a longer one is another.
    kept.map(|(key, value)| (key, start(value, LONGEST_TEXT + 1))).collect()
}

/// The counts, and the condition `NodesHealthy`.
pub(super) fn health(nodes: Option<&[NodeSeen]>) -> (Option<NodeCounts>, Statement) {
    let type_ = condition::NODES_HEALTHY;
    let Some(nodes) = nodes else {
        return (None, Statement::new(type_, None, Reason::NodesNotRead, "the Nodes are not read yet"));
    };
    let count = |nodes: usize| i32::try_from(nodes).unwrap_or(i32::MAX);
    let total = count(nodes.len());
    let ready = count(nodes.iter().filter(|node| node.ready == Some(true)).count());
    let counts = NodeCounts { total, ready, summary: format!("{ready}/{total}") };
    let not_ready: Vec<String> = nodes
        .iter()
        .filter(|node| node.ready != Some(true))
        .map(|node| format!("{} ({})", node.name, if node.ready.is_none() { "silent" } else { "not Ready" }))
        .collect();
    let statement = if total == 0 {
        Statement::new(type_, false, Reason::NoNodes, "the cluster has no Nodes")
    } else if not_ready.is_empty() {
        Statement::new(type_, true, Reason::NodesReady, format!("all {total} Nodes are Ready"))
    } else {
        let message = format!("{ready} of {total} Nodes are Ready; not: {}", super::names(not_ready));
        Statement::new(type_, false, Reason::NodesNotReady, message)
    };
    (Some(counts), statement)
}
