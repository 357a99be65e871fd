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
    /// The highest fence that its guard has seen, and the run that it is of.
    pub fence: ((i64, i64), String),
    /// Steps that the last run did on it.
    pub done: usize,
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
        let alive = self.members.iter().filter(|host| metal[*host].alive).count();
        2 * alive > self.members.len()
    }

    /// Whether its API answers the operator.
    pub fn answers(&self, metal: &BTreeMap<String, Metal>) -> bool {
        !self.cut && self.has_quorum(metal) && self.planes.iter().any(|host| metal[host].alive)
    }
}
