//! What the planner of MachineRequests looks at.

use crds::{ClusterDeployment, Machine, MachineRequest, MachineSet};
use jiff::Timestamp;

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// The request.
    pub request: &'a MachineRequest,
    /// The cluster that it names.
    pub deployment: Option<&'a ClusterDeployment>,
    /// The set of workers that it names.
    pub set: Option<&'a MachineSet>,
    /// Whether there is a HostPool for what it selects together with its set.
    pub has_pool: bool,
    /// Machines of the cluster, read from the API and not from a cache where something is made or deleted for them.
    pub machines: &'a [&'a Machine],
}
