//! What the planner of MachineSets looks at.

use crds::{ClusterDeployment, Host, Machine, MachineSet, PlaybookRun};
use jiff::Timestamp;

use crate::formed_cluster::FormedCluster;

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// The set.
    pub set: &'a MachineSet,
    /// The object that forms the cluster that it is of.
    pub formed: Option<FormedCluster<'a>>,
    /// Machines of the cluster, read from the API and not from a cache where something is made or deleted for them.
    pub machines: &'a [&'a Machine],
    /// Hosts of the namespace.
    pub hosts: &'a [&'a Host],
    /// Whether there is a HostPool for what its template selects.
    pub has_pool: bool,
    /// Runs of the cluster.
    pub runs: &'a [&'a PlaybookRun],
}

impl<'a> Observed<'a> {
    /// What forms its cluster, where that is one of Kubernetes.
    pub(super) fn deployment(&self) -> Option<&'a ClusterDeployment> {
        self.formed?.deployment
    }
}
