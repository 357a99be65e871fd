//! Nodes: what is kept of each, how they are counted, and what Machines want on them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crds::Machine;
use crds::ObjectExt;
use crds::Reason;
use crds::cluster::NodeCounts;
use crds::conditions::Statement;
use crds::names::{annotation, condition, node_condition};
use crds::placement::plain;
use crds::step::Role;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use serde_json::json;

/// The label that shows a worker's role in `kubectl get nodes`; kubeadm puts the control planes'.
const WORKER_LABEL: &str = "node-role.kubernetes.io/worker";

/// A Node says what it wants of itself: no more than this is kept of each list, and of each text.
const MOST_ENTRIES: usize = 256;
const LONGEST_TEXT: usize = 512;

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
    /// Its taints.
    pub taints: Vec<Taint>,
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
            network_probe: node
                .metadata
                .annotations
                .and_then(|mut annotations| annotations.remove(annotation::NETWORK_PROBE))
                .unwrap_or_default(),
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
            labels: node.metadata.labels.unwrap_or_default().into_iter().take(MOST_ENTRIES).collect(),
            taints: spec.taints.unwrap_or_default().into_iter().take(MOST_ENTRIES).collect(),
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

fn short(text: String) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned(),
        None => text,
    }
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

/// The Machines that live, by the name of their Host, which is their Node's.
pub(super) fn by_node(machines: &[Arc<Machine>]) -> HashMap<&str, &Machine> {
    let lives = |machine: &&Arc<Machine>| !machine.is_deleting();
    let machines = machines.iter().filter(lives);
    machines.filter_map(|machine| Some((machine.spec.host_ref.as_ref()?.name.as_str(), &**machine))).collect()
}

/// The merge patch that gives a Node the labels and taints of its Machine; none when they are all there.
pub(super) fn patch(node: &NodeSeen, machine: &Machine) -> Option<serde_json::Value> {
    let mut labels = plain(&machine.spec.labels);
    if machine.spec.role == Role::Worker {
        labels.insert(WORKER_LABEL.into(), String::new());
    }
    labels.retain(|key, value| node.labels.get(key) != Some(value));

    let wanted: Vec<Taint> = machine
        .spec
        .taints
        .iter()
        .map(|taint| Taint {
            key: taint.key.clone(),
            value: taint.value.as_ref().map(|value| value.0.clone()).filter(|value| !value.is_empty()),
            effect: format!("{:?}", taint.effect),
            time_added: None,
        })
        .collect();
    let same = |a: &Taint, b: &Taint| a.key == b.key && a.effect == b.effect;
    let there = |taint: &Taint| {
        node.taints.iter().any(|t| {
            same(t, taint) && t.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default()
        })
    };
    let taints_wanted = !wanted.iter().all(there);
    if labels.is_empty() && !taints_wanted {
        return None;
    }
    let mut patch = json!({ "metadata": { "labels": labels } });
    if taints_wanted {
        let kept = node.taints.iter().filter(|taint| !wanted.iter().any(|w| same(w, taint)));
        let taints: Vec<Taint> = kept.cloned().chain(wanted.iter().cloned()).collect();
        // The list goes as a whole: another's taint must not be lost in between.
        patch["metadata"]["resourceVersion"] = json!(node.resource_version);
        patch["spec"] = json!({ "taints": taints });
    }
    Some(patch)
}
