//! Why nothing is written to the Nodes of a cluster.

use crds::ClusterDeployment;
use crds::ObjectExt;

use super::observed::Observed;
use crate::store;

/// Why nothing is written to Nodes of the cluster now.
pub(super) fn hindrance(observed: &Observed<'_>) -> Option<&'static str> {
    let is_believed = |deployment: &ClusterDeployment| store::is_believed(deployment, observed.resumed_at);
    match observed.deployment {
        None => Some("there is no ClusterDeployment of its cluster"),
        Some(deployment) if deployment.is_deleting() => Some("its cluster is being deleted"),
        Some(deployment) if deployment.spec.paused => Some("its cluster is paused"),
        Some(deployment) if !is_believed(deployment) => {
            Some("the metadata cluster may be older than the machines: what it says is compared with them first")
        }
        Some(_) => None,
    }
}
