//! What the planner of ClusterAddons answers.

use crds::ClusterAddonStatus;
use crds::cluster_addon::{AppliedObject, ChartRelease};
use serde_json::Value;

use super::chart::Operation;
use super::removal::Deletion;
use crate::Plan;

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put the finalizer on the ClusterAddon.
    AddFinalizer,
    /// Write down these objects before they are applied.
    Record(Vec<AppliedObject>),
    /// Make what a run has applied of this object the Addon's, if nobody has written it since it was read.
    Adopt {
        /// The place of its document.
        index: usize,
        /// The object.
        object: AppliedObject,
        /// A merge patch.
        patch: Box<Value>,
    },
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
    /// Write down the release, and the Job that is about to be made, before it is.
    RecordRelease(Box<ChartRelease>),
    /// Make a Job that runs Helm, and its Secret before it.
    Run(Box<Operation>),
    /// Delete the Secret of this name, which a Job that is over was given.
    DropInputs(String),
    /// Take the finalizer off the ClusterAddon.
    RemoveFinalizer,
}

pub(super) type Planned = Plan<Action, ClusterAddonStatus>;
