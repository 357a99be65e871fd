//! What the planner of Machines looks at.

use crds::{Cluster, ClusterDeployment, Host, Machine, PlaybookRun};
use jiff::Timestamp;

use crate::attempts;
use crate::claims::{self, Share};
use crate::cluster::NodeSeen;
use crate::drain::Drain;
use crate::formed_cluster::{FormedCluster, is_node};

/// Why a Node is not as it was to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeAnswer {
    /// Another wrote it first.
    Changed,
    /// It was refused, or not reached: in the API's words.
    Refused(String),
}

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// When an operator took the metadata cluster up again after nobody had renewed the Lease for long; none: no such
    /// time is known.
    pub resumed_at: Option<Timestamp>,
    /// The Machine.
    pub machine: &'a Machine,
    /// The object that forms the cluster that it is of.
    pub formed: Option<FormedCluster<'a>>,
    /// Machines of the cluster.
    pub machines: &'a [&'a Machine],
    /// The Hosts that it holds, names or may take, and those that may be the same machine as one of them.
    pub hosts: &'a [&'a Host],
    /// What it may take of the pool; `None`: it has a Host, or the pool was shared out without it.
    pub share: Option<Share<'a>>,
    /// Runs of the cluster.
    pub runs: &'a [&'a PlaybookRun],
    /// Nodes of the cluster (its own is enough); `None`: its API has not answered, so nothing is known.
    pub nodes: Option<&'a [NodeSeen]>,
    /// What is seen of the cluster through its API.
    pub cluster: Option<&'a Cluster>,
    /// What the cluster's API answered when the Node was written; `None`: it was not written, or is as asked.
    pub node_answer: Option<&'a NodeAnswer>,
    /// The Pods that its node is to be drained of, once they were looked at (see [`super::looks_at_pods`]).
    pub drain: Option<&'a Drain>,
}

impl<'a> Observed<'a> {
    /// What forms its cluster, where that is one of Kubernetes.
    pub(super) fn deployment(&self) -> Option<&'a ClusterDeployment> {
        self.formed?.deployment
    }

    /// Whether the machine is, or becomes, a Node of its cluster.
    pub(super) fn has_node(&self) -> bool {
        is_node(self.machine.spec.cluster_kind, self.machine.spec.role, self.formed)
    }
}

/// The Host that the machine holds.
pub(super) fn held<'a>(observed: &Observed<'a>) -> Option<&'a Host> {
    observed.hosts.iter().copied().find(|host| claims::holds(observed.machine, host))
}

/// The run that works on a Host, or is about to change something there.
pub(super) fn active_run<'a>(runs: &[&'a PlaybookRun], host: &str) -> Option<&'a PlaybookRun> {
    let works = |run: &PlaybookRun| !attempts::is_over(run) && !run.spec.intent.changes_nothing();
    runs.iter().copied().find(|run| works(run) && run.spec.hosts.iter().any(|named| named == host))
}
