//! The machines themselves, and the clusters that run on them: what is so, whoever knows.

use std::collections::{BTreeMap, BTreeSet};

/// One machine.
#[derive(Clone, Debug, Default)]
pub struct Metal {
    /// It has power.
    pub alive: bool,
    /// Its kubelet does not work.
    pub sick: bool,
    /// Something of a cluster is on it.
    pub dirty: bool,
    /// Runs on it fail.
    pub broken: bool,
    /// The cluster that its kubelet is of.
    pub kubelet: Option<String>,
    /// Its kubelet has started, and registers its Node once the API answers.
    pub boots: bool,
    /// Its Node was registered again since it was made part of a cluster.
    pub returned: bool,
    /// It has the data of a member of etcd.
    pub data: bool,
    /// The highest fence that its guard has seen, and the run that it is of.
    pub fence: ((i64, i64), String),
    /// Steps that the last run did on it.
    pub done: usize,
}

impl Metal {
    /// It has power again, and everything on it starts.
    pub fn boot(&mut self) {
        self.boots |= !self.alive;
        self.alive = true;
    }

    /// Nothing of a cluster is left on it.
    pub fn wipe(&mut self) {
        (self.dirty, self.kubelet, self.data) = (false, None, false);
        (self.boots, self.returned) = (false, false);
    }
}

/// A cluster that stands.
#[derive(Clone, Debug, Default)]
pub struct Town {
    /// Hosts that are members of etcd.
    pub members: BTreeSet<String>,
    /// Its Nodes.
    pub nodes: BTreeSet<String>,
    /// Those of them that run an API server.
    pub planes: BTreeSet<String>,
    /// Nodes that take no Pods.
    pub cordoned: BTreeSet<String>,
    /// The network between it and the operator is cut.
    pub cut: bool,
}

impl Town {
    /// Whether more than half of etcd's members have power.
    pub fn has_quorum(&self, metal: &BTreeMap<String, Metal>) -> bool {
        let votes = |host: &&String| metal[*host].alive && metal[*host].data;
        let alive = self.members.iter().filter(votes).count();
        2 * alive > self.members.len()
    }

    /// Whether etcd goes on without this one.
    pub fn has_quorum_without(&self, host: &str, metal: &BTreeMap<String, Metal>) -> bool {
        let mut after = self.clone();
        after.members.remove(host);
        after.has_quorum(metal)
    }

    /// Whether its API answers its own machines.
    pub fn works(&self, metal: &BTreeMap<String, Metal>) -> bool {
        let serves = |host: &String| metal[host].alive && metal[host].kubelet.is_some();
        self.has_quorum(metal) && self.planes.iter().any(serves)
    }

    /// Whether its API answers the operator.
    pub fn answers(&self, metal: &BTreeMap<String, Metal>) -> bool {
        !self.cut && self.works(metal)
    }
}
