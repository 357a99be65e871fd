//! Why nothing is written to the Nodes of a cluster.

use super::observed::Observed;
use crate::formed_cluster::{Standstill, standstill};

/// Why nothing is written to Nodes of the cluster now.
pub(super) fn hindrance(observed: &Observed<'_>) -> Option<&'static str> {
    Some(match standstill(observed.formed, observed.resumed_at)? {
        Standstill::NotThere => "there is no ClusterDeployment of its cluster",
        Standstill::Deleting => "its cluster is being deleted",
        Standstill::Paused => "its cluster is paused",
        Standstill::NotBelieved => {
            "the metadata cluster may be older than the machines: what it says is compared with them first"
        }
    })
}
