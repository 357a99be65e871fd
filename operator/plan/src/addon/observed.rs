//! What the planner of Addons looks at, and what it answers.

use crds::{Addon, Cluster, ClusterAddon, ClusterDeployment};
use jiff::Timestamp;

use super::problem::Problem;

/// The revision that the source makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Its name.
    pub revision: String,
    /// Its size as it is kept, in bytes.
    pub size: usize,
    /// Whether it is kept already.
    pub is_kept: bool,
}

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// The Addon.
    pub addon: &'a Addon,
    /// Addons of the namespace.
    pub addons: &'a [&'a Addon],
    /// Clusters of the namespace.
    pub clusters: &'a [&'a Cluster],
    /// ClusterDeployments of the namespace.
    pub deployments: &'a [&'a ClusterDeployment],
    /// ClusterAddons of the namespace.
    pub cluster_addons: &'a [&'a ClusterAddon],
    /// What its source makes, or why it makes nothing.
    pub content: &'a Result<Content, Problem>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put the finalizer on the Addon.
    AddFinalizer,
    /// Keep the content of the revision of this name.
    Keep(String),
    /// Apply a ClusterAddon.
    Apply(Box<ClusterAddon>),
    /// Delete a ClusterAddon.
    Delete(Box<ClusterAddon>),
    /// Delete the content of the revision of this name, which no cluster has any more.
    Forget(String),
    /// Take the finalizer off the Addon.
    RemoveFinalizer,
}

/// A cluster that is selected.
pub(super) struct Selected<'a> {
    pub cluster: &'a Cluster,
    pub there: Option<&'a ClusterAddon>,
    /// Names of the Addons that come first and are not Ready on it.
    pub waits_for: Vec<String>,
}
