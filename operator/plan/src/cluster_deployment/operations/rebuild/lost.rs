//! The machines of a cluster that is lost, and the report on it.

use crds::Reason;

use crate::cluster_deployment::lane::Lane;
use crate::cluster_deployment::proposal::{Area, Proposal, Severity};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};

/// What stands back for a rebuild.
pub(super) const EVERYTHING: &[Lane] =
    &[Lane::Install, Lane::ControlPlane, Lane::Workers, Lane::Remediation, Lane::Leaving];

pub(super) fn machines<'s, 'a>(state: &'s ClusterState<'a>) -> impl Iterator<Item = &'s ClusterMachine<'a>> {
    state.live.iter().chain(&state.leaving)
}

/// Why the cluster is not as wanted.
pub(super) fn report(reason: Reason, message: String) -> Proposal {
    Proposal::report(Area::Rebuild, reason, message, Severity::Lost)
}
