//! What is done about a Machine.

use crds::host::Quarantine;
use crds::inputs::HostIdentity;
use crds::references::{ClaimRef, LocalRef};
use crds::{Host, Machine, ObjectExt};

use crate::cluster::NodeSeen;
use crate::drain::PodSeen;
use crate::node_metadata::NodeWrite;

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put the finalizer on the Machine.
    AddFinalizer,
    /// Write the claim into the Host, if nobody has written the Host since it was read.
    Claim {
        /// The Host, as it was read.
        host: Box<Host>,
        /// The claim.
        claim: ClaimRef,
        /// The claim's epoch.
        epoch: i64,
        /// Which machine the Host is, as far as it is known.
        identity: Option<HostIdentity>,
        /// Finalizers of the Host from now on.
        finalizers: Vec<String>,
    },
    /// Name the Host in the Machine.
    SetHost(LocalRef),
    /// Give the Node its labels, annotations and taints. What it is answered is observed: the plan is made once more.
    ApplyNode {
        /// Namespace of the cluster's objects.
        namespace: String,
        /// The cluster.
        cluster: String,
        /// What has to be written.
        write: Box<NodeWrite>,
    },
    /// Keep new Pods off the Node.
    Cordon {
        /// Namespace of the cluster's objects.
        namespace: String,
        /// The cluster.
        cluster: String,
        /// The Node.
        node: String,
        /// Its UID: a Node that is gone is not made by it.
        uid: String,
    },
    /// Let new Pods come to the Node again, unless somebody else has cordoned it.
    Uncordon {
        /// Namespace of the cluster's objects.
        namespace: String,
        /// The cluster.
        cluster: String,
        /// The Node.
        node: String,
        /// Its UID.
        uid: String,
    },
    /// Ask the cluster to let these Pods go elsewhere. What it answers is observed: the plan is made once more with it.
    Evict {
        /// Namespace of the cluster's objects.
        namespace: String,
        /// The cluster.
        cluster: String,
        /// The Pods.
        pods: Vec<PodSeen>,
    },
    /// Delete the Node from the cluster through its API.
    DeleteNode {
        /// Namespace of the cluster's objects.
        namespace: String,
        /// The cluster.
        cluster: String,
        /// The Node.
        node: String,
    },
    /// Take the claim off the Host, if nobody has written the Host since it was read.
    Release {
        /// The Host, as it was read.
        host: Box<Host>,
        /// Finalizers of the Host from now on.
        finalizers: Vec<String>,
        /// Why it is not to be claimed again; none: what is there stays.
        quarantine: Option<Quarantine>,
        /// Which machine it is, where that still matters.
        identity: Option<HostIdentity>,
    },
    /// Let the Machine go.
    RemoveFinalizer,
}

impl Action {
    /// Keeps new Pods off the Node of a machine.
    pub(super) fn cordon(machine: &Machine, node: &NodeSeen) -> Self {
        let (namespace, cluster) = (machine.namespace().to_owned(), machine.spec.cluster_name.clone());
        Self::Cordon { namespace, cluster, node: node.name.clone(), uid: node.uid.clone() }
    }

    /// Asks these Pods of a machine to go, if there are any.
    pub(super) fn evict(machine: &Machine, pods: Vec<PodSeen>) -> Option<Self> {
        let (namespace, cluster) = (machine.namespace().to_owned(), machine.spec.cluster_name.clone());
        (!pods.is_empty()).then_some(Self::Evict { namespace, cluster, pods })
    }

    /// Whether it is only right if nothing has changed since what it was decided on was read: caches are not
    /// believed.
    pub fn is_irrevocable(&self) -> bool {
        match self {
            // The API server writes the Node only if it is the one, and the version, that was seen.
            Action::ApplyNode { .. } => false,
            Action::AddFinalizer | Action::SetHost(_) | Action::Cordon { .. } | Action::Evict { .. } => false,
            // It can be cordoned again.
            Action::Uncordon { .. } => false,
            Action::Claim { .. } | Action::DeleteNode { .. } | Action::Release { .. } | Action::RemoveFinalizer => true,
        }
    }
}
