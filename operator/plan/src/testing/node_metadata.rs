//! Labels, annotations and taints of Nodes: what kubelets register, what the API server makes of what is written, and
//! what people put there.

use std::collections::BTreeMap;

use crds::names::{NODE_FIELD_MANAGER, annotation};
use crds::placement::plain;
use crds::{Machine, ObjectExt};
use k8s_openapi::api::core::v1::Taint;
use serde_json::Value;

use super::world::World;
use crate::cluster::NodeSeen;
use crate::cluster::field_owners::{FieldOwner, Owners};
use crate::node_metadata::NodeWrite;

type Map = BTreeMap<String, String>;

impl World {
    /// The kubelet of this machine is given what it registers its Node with.
    pub(super) fn configure_kubelet(&mut self, host: &str) {
        let names = |machine: &&Machine| machine.spec.host_ref.as_ref().is_some_and(|named| named.name == host);
        let Some(machine) = self.machines.iter().find(names) else {
            return;
        };
        let mut node = NodeSeen { labels: plain(&machine.spec.labels), ..NodeSeen::default() };
        for key in node.labels.keys() {
            node.owners.labels.insert(key.clone(), [owner("kubelet", false)].into());
        }
        let taints = machine.spec.taints.iter();
        node.taints = taints.map(|taint| seen_taint(&taint.key, &format!("{:?}", taint.effect))).collect();
        self.registrations.insert(host.to_owned(), node);
    }

    /// A Node that was not there is as its kubelet registers it.
    pub(super) fn register_node(&mut self, cluster: &str, host: &str) -> bool {
        let registration = self.registrations.get(host).cloned().unwrap_or_default();
        let cluster = self.cluster_mut(cluster);
        let is_new = cluster.nodes.insert(host.to_owned());
        if is_new {
            cluster.node_metadata.insert(host.to_owned(), registration);
        }
        is_new
    }

    pub(super) fn apply_to_node(&mut self, cluster: &str, write: &NodeWrite) {
        let now = self.now;
        if self.find_cluster(cluster).is_none_or(|cluster| !self.answers(cluster)) {
            return;
        }
        let cluster = self.cluster_mut(cluster);
        assert!(cluster.stays() && !cluster.deployment.spec.paused, "nothing is written to Nodes of such a cluster");
        let node = cluster.node_metadata.entry(write.node.clone()).or_default();
        if let Some(patch) = &write.merge {
            merge(node, patch);
        }
        if let Some(object) = &write.apply {
            let metadata = &object["metadata"];
            apply(&mut node.labels, &mut node.owners.labels, &metadata["labels"]);
            apply(&mut node.annotations, &mut node.owners.annotations, &metadata["annotations"]);
        }
        node.owners.written_at = Some(now);
    }

    /// What the Node of a Host has.
    pub fn node_metadata(&mut self, host: &str) -> &mut NodeSeen {
        let name = self.name().to_owned();
        self.cluster_mut(&name).node_metadata.entry(host.to_owned()).or_default()
    }

    /// Somebody labels a Node, with `kubectl label` or by server-side apply.
    pub fn label_node(&mut self, host: &str, key: &str, value: &str, manager: &str, applies: bool) {
        let node = self.node_metadata(host);
        node.labels.insert(key.into(), value.into());
        node.owners.labels.insert(key.into(), [owner(manager, applies)].into());
    }

    /// Somebody taints a Node.
    pub fn taint_node(&mut self, host: &str, key: &str) {
        self.node_metadata(host).taints.push(seen_taint(key, "NoSchedule"));
    }

    /// Whether each machine's Node has what the machine wants, and nothing that it has wanted before.
    pub(super) fn check_node_metadata(&self) {
        for machine in self.machines.iter().filter(|machine| !machine.is_deleting()) {
            let host = machine.spec.host_ref.as_ref().map(|host| host.name.as_str()).unwrap_or_default();
            let cluster = self.find_cluster(&machine.spec.cluster_name);
            let Some(node) = cluster.filter(|cluster| cluster.nodes.contains(host)) else {
                continue;
            };
            let Some(has) = node.node_metadata.get(host) else { continue };
            let wanted = plain(&machine.spec.labels);
            let ours = has.labels.iter().filter(|(key, _)| !key.starts_with("node-role.kubernetes.io/"));
            assert!(ours.eq(wanted.iter()), "{host} has labels {:?}, not {wanted:?}\n{}", has.labels, self.report());
            let taints: Vec<_> = has.taints.iter().map(|taint| taint.key.as_str()).collect();
            let wanted: Vec<_> = machine.spec.taints.iter().map(|taint| taint.key.as_str()).collect();
            assert!(taints == wanted, "{host} has taints {taints:?}, not {wanted:?}\n{}", self.report());
        }
    }
}

pub fn owner(manager: &str, applies: bool) -> FieldOwner {
    FieldOwner { manager: manager.into(), applies }
}

pub fn seen_taint(key: &str, effect: &str) -> Taint {
    Taint { key: key.into(), effect: effect.into(), ..Taint::default() }
}

/// A JSON merge patch.
pub fn merge(node: &mut NodeSeen, patch: &Value) {
    for key in patch["metadata"]["labels"].as_object().into_iter().flatten().map(|(key, _)| key) {
        node.labels.remove(key);
        node.owners.labels.remove(key);
    }
    let annotations = patch["metadata"]["annotations"].as_object();
    if let Some(taints) = annotations.and_then(|all| all.get(annotation::TAINTS_FROM_MACHINE)) {
        let names = |text: &str| text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        node.own_taints = taints.as_str().map(names);
    }
    if let Some(taints) = patch["spec"].get("taints") {
        node.taints = serde_json::from_value(taints.clone()).unwrap();
    }
}

/// Server-side apply of labels or annotations, by force.
pub fn apply(values: &mut Map, owners: &mut Owners, object: &Value) {
    let applied: Map = serde_json::from_value(object.clone()).unwrap();
    let us = owner(NODE_FIELD_MANAGER, true);
    for (key, of_key) in owners.iter_mut().filter(|(key, _)| !applied.contains_key(*key)) {
        if of_key.remove(&us) && of_key.is_empty() {
            values.remove(key);
        }
    }
    owners.retain(|_, of_key| !of_key.is_empty());
    for (key, value) in applied {
        let of_key = owners.entry(key.clone()).or_default();
        if values.get(&key) != Some(&value) {
            of_key.clear();
        }
        of_key.insert(us.clone());
        values.insert(key, value);
    }
}
