//! The Pods of the cluster's nodes, and the budgets that hold them.

use crds::names::condition;
use crds::{Conditions, Machine, ObjectExt};

use super::cluster::SimulatedCluster;
use super::world::World;
use crate::cluster::{NetworkSeen, NodeSeen};
use crate::drain::{Drain, PodSeen, Refusal};

impl World {
    pub(super) fn node(&self, cluster: &SimulatedCluster, name: &str) -> NodeSeen {
        NodeSeen {
            name: name.to_owned(),
            uid: name.to_owned(),
            addresses: vec![name.replace('h', "10.0.0.")],
            ready: (!self.silent_nodes.contains(name)).then_some(!self.sick_nodes.contains(name)),
            kubelet_version: self.kubelet_versions.get(name).map(ToString::to_string).unwrap_or_default(),
            unschedulable: cluster.cordoned.contains(name),
            network: self.cut_off_nodes.contains(name).then(|| NetworkSeen::CutOff {
                reason: crds::Reason::PodNetworkUnreachable,
                message: "0 of 2 nodes' Pod networks answer".into(),
            }),
            ..cluster.node_metadata.get(name).cloned().unwrap_or_default()
        }
    }

    /// What a look at the Pods of the machine's node finds.
    pub(super) fn drain_of(&self, machine: &Machine) -> Drain {
        let node = machine.spec.host_ref.as_ref().map(|host| host.name.as_str());
        let node = node.unwrap_or_default();
        let pod = |number: usize| PodSeen {
            namespace: node.into(),
            name: format!("pod-{number}"),
            uid: format!("{node}-{number}"),
            ..PodSeen::default()
        };
        let pods = 0..self.pods.get(node).copied().unwrap_or_default();
        let pods: Vec<PodSeen> = pods.map(pod).collect();
        let refusal = |pod: &PodSeen| Refusal {
            uid: pod.uid.clone(),
            budgets: vec!["budget".into()],
            message: String::new(),
            retry_after_seconds: 0,
        };
        let refusals = match self.held_pods.contains(node) {
            true => pods.iter().map(refusal).collect(),
            false => Vec::new(),
        };
        Drain { pods: Ok(pods), refusals }
    }

    /// Server-side apply by the operator.
    pub(super) fn cordon(&mut self, cluster: &str, node: &str, uid: &str) {
        assert_eq!(node, uid, "the UID of this Node, as `node` makes it");
        let cluster = self.cluster_mut(cluster);
        if cluster.nodes.contains(node) {
            cluster.cordoned.insert(node.to_owned());
            cluster.node_metadata.entry(node.to_owned()).or_default().owners.drains = true;
        }
    }

    /// It gives that up.
    pub(super) fn uncordon(&mut self, cluster: &str, node: &str, uid: &str) {
        assert_eq!(node, uid, "the UID of this Node, as `node` makes it");
        let cluster = self.cluster_mut(cluster);
        cluster.cordoned.remove(node);
        cluster.node_metadata.entry(node.to_owned()).or_default().owners.drains = false;
    }

    /// Whether each Node is drained whose machine is to be, and no other one.
    pub(super) fn check_drained(&self) {
        for machine in self.machines.iter().filter(|machine| !machine.is_deleting()) {
            let host = machine.spec.host_ref.as_ref().map(|host| host.name.as_str()).unwrap_or_default();
            let cluster = self.find_cluster(&machine.spec.cluster_name);
            let Some(cluster) = cluster.filter(|cluster| cluster.nodes.contains(host)) else { continue };
            let is_wanted = !machine.spec.drain_for.is_empty();
            let (name, is_cordoned) = (machine.name(), cluster.cordoned.contains(host));
            assert_eq!(is_cordoned, is_wanted, "whether the Node of {name} takes no Pods\n{}", self.report());
            assert_eq!(machine.is_true(condition::DRAINED), is_wanted, "what {name} says\n{}", self.report());
        }
    }

    /// A Pod's namespace names its node.
    pub(super) fn evict(&mut self, name: &str, pods: &[PodSeen]) {
        let cluster = self.find_cluster(name).unwrap();
        let cordoned = cluster.cordoned.clone();
        assert!(cluster.stays(), "nothing is drained in a cluster's own deletion");
        for pod in pods {
            let node = &pod.namespace;
            assert!(cordoned.contains(node), "{node} takes new Pods");
            self.evictions.push(node.clone());
            if !self.held_pods.contains(node)
                && let Some(left) = self.pods.get_mut(node)
            {
                *left = left.saturating_sub(1);
            }
        }
    }
}
