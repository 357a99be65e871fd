//! What the planner of ClusterAddons answers.

use crds::ClusterAddonStatus;
use crds::cluster_addon::AppliedObject;
use serde_json::Value;

use super::removal::Deletion;
use crate::Plan;

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put the finalizer on the ClusterAddon.
    AddFinalizer,
    /// Write down these objects before they are applied.
    Record(Vec<AppliedObject>),
    /// Apply the document of this place in the order.
    Apply {
        /// Its place.
        index: usize,
        /// The object.
        object: AppliedObject,
        /// What is applied.
        manifest: Box<Value>,
        /// Whether fields are taken over from others.
        force: bool,
    },
    /// Delete an object.
    Delete(Deletion),
    /// Take the finalizer off the ClusterAddon.
    RemoveFinalizer,
}

pub(super) type Planned = Plan<Action, ClusterAddonStatus>;
