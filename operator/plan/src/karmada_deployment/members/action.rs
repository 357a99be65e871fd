//! What the planner of members answers.

use crds::PlaybookRun;
use crds::cluster_addon::AppliedObject;
use crds::karmada_deployment::KarmadaMemberStatus;

use super::super::given_estimator::GivenEstimator;
use super::super::leaves::LeafWanted;
use super::super::place::Manifest;
use super::leaf::Leaf;
use crate::Plan;
use crate::cluster_addon::Deletion;

/// Where an object of a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the member.
    Member,
    /// In the plane.
    Plane,
    /// On the host of the plane.
    Host,
}

/// What to do for a member.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Name of the member.
    pub member: String,
    /// What.
    pub act: Act,
}

/// What is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Make this certificate, or keep one that still does, in the Secret `Leaf::secret` of the object's namespace.
    IssueCertificate(Leaf, LeafWanted),
    /// Delete that Secret.
    DeleteCertificate(Leaf),
    /// Make this run, which reads the member's kubeconfig on its Host.
    ReadKubeconfig(Box<PlaybookRun>),
    /// Put the kubeconfig that a run has read on this Host into the Secret `member_kubeconfig_secret`.
    KeepKubeconfig {
        /// The run.
        run: String,
        /// The Host.
        host: String,
    },
    /// Delete a run, and what it has read.
    ForgetRun(Box<PlaybookRun>),
    /// Delete the Secret `member_kubeconfig_secret`.
    DeleteKubeconfig,
    /// Keep this for the member's estimator on machines in the Secret `GivenEstimator::secret` of the object's
    /// namespace.
    GiveEstimator(GivenEstimator),
    /// Delete that Secret.
    TakeEstimator,
    /// Apply an object by server-side apply of `KARMADA_FIELD_MANAGER`.
    Apply {
        /// Where.
        place: Place,
        /// Its place among the objects of `wanted()` for that member there.
        index: usize,
        /// The object.
        object: AppliedObject,
        /// What is applied.
        manifest: Box<Manifest>,
        /// Whether fields are taken over from others.
        force: bool,
    },
    /// Change an object by a merge patch. Its metadata has the UID and the resourceVersion that it is for: a conflict
    /// is looked at anew, and one that is gone is not made.
    Patch {
        /// Where.
        place: Place,
        /// The object.
        object: AppliedObject,
        /// The patch.
        patch: Box<Manifest>,
    },
    /// Delete an object, with its UID as precondition.
    Delete {
        /// Where.
        place: Place,
        /// Which.
        deletion: Deletion,
    },
}

impl Act {
    /// Where an object is written or deleted; `None`: in the metadata cluster.
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::IssueCertificate(..)
            | Self::DeleteCertificate(_)
            | Self::ReadKubeconfig(_)
            | Self::KeepKubeconfig { .. }
            | Self::ForgetRun(_)
            | Self::DeleteKubeconfig
            | Self::GiveEstimator(_)
            | Self::TakeEstimator => None,
            Self::Apply { place, .. } | Self::Patch { place, .. } | Self::Delete { place, .. } => Some(*place),
        }
    }
}

/// The plan of a plane's members: what is done, and all of `status.members`, by name.
pub type Planned = Plan<Action, Vec<KarmadaMemberStatus>>;
