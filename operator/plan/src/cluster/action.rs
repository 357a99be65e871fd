//! What is done in a cluster.

use std::sync::Arc;

use crds::Host;

use crate::drain::PodSeen;

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Keep the Cluster while it is a member of a Karmada control plane.
    AddFinalizer,
    /// Let it go.
    RemoveFinalizer,
    /// Merge this patch into a Node of the cluster.
    PatchNode {
        /// The Node.
        name: String,
        /// A JSON merge patch.
        patch: serde_json::Value,
    },
    /// Have the Pods of the cluster's DNS scheduled onto different machines.
    SpreadDns {
        /// A JSON merge patch of its Deployment.
        patch: serde_json::Value,
    },
    /// Evict a Pod of the cluster's DNS from a machine that has more of them than others.
    MoveDnsPod {
        /// The Pod.
        pod: PodSeen,
        /// What is done, for people.
        tells: String,
    },
    /// Keep new Pods from the Node of a machine that was forgotten.
    CordonOrphan(OrphanNode),
    /// Delete the Node of a machine that was forgotten.
    DeleteOrphan(OrphanNode),
}

/// The Node of a machine that was removed without reaching it, and that stands in the cluster all the same.
#[derive(Clone, Debug, PartialEq)]
pub struct OrphanNode {
    /// The Node.
    pub name: String,
    /// This very one.
    pub uid: String,
    /// The Host, if there still is one.
    pub host: Option<Arc<Host>>,
    /// What was seen, and is done, for people; none: another step tells it.
    pub tells: Option<String>,
}
