//! What the planner of ClusterAddons looks at.

use crds::cluster_addon::AppliedObject;
use crds::names::ADDON_FIELD_MANAGER;
use crds::{Addon, Cluster, ClusterAddon};
use jiff::Timestamp;
use serde_json::Value;

use super::chart::{ChartSeen, PreparedChart, Release};
use super::conflict::FieldConflict;
use super::prepared::Prepared;
use crate::addon::Problem;

/// What was observed.
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// The ClusterAddon.
    pub object: &'a ClusterAddon,
    /// Its Addon.
    pub addon: Option<&'a Addon>,
    /// Its Cluster.
    pub cluster: Option<&'a Cluster>,
    /// The other ClusterAddons of the cluster.
    pub others: &'a [&'a ClusterAddon],
    /// What is to be applied.
    pub wanted: &'a Wanted,
    /// What was seen on the cluster.
    pub contact: &'a Contact,
    /// What was seen of the Jobs that run Helm.
    pub chart: &'a ChartSeen,
}

/// What is to be applied.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// No revision was given yet.
    Nothing,
    /// The content of the revision cannot be read; why.
    NoContent(String),
    /// It cannot be applied.
    Invalid(Problem),
    /// These manifests.
    Documents(Box<Prepared>),
    /// This chart.
    Chart(Box<PreparedChart>),
}

/// Contact with the cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Contact {
    /// It was not looked at.
    NotMade,
    /// It does not answer; what it said last.
    Lost(String),
    /// It was looked at.
    Made(Seen),
}

/// What was seen on the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The documents, in their order: those of the source, or of the chart's release.
    pub documents: Vec<DocumentSeen>,
    /// Objects of the inventory that are no documents.
    pub leftovers: Vec<Leftover>,
    /// The chart's release, where there is one.
    pub release: Option<Release>,
}

/// A document, and what is on the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentSeen {
    /// The object that it makes; `None` while the cluster does not know its kind.
    pub object: Option<AppliedObject>,
    /// How it is.
    pub state: State,
}

/// How an object is on the cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// The cluster does not know its kind.
    KindUnknown,
    /// It cannot be read, or was refused when it was applied.
    Refused(String),
    /// Others have set its fields otherwise, as was found when it was applied.
    Conflicting(Vec<FieldConflict>),
    /// It is not there.
    Missing,
    /// It is there.
    There {
        /// As the cluster has it.
        live: Box<Value>,
        /// What the API server says of applying it.
        trial: Trial,
    },
}

/// What the API server says of applying an object: a dry run.
#[derive(Clone, Debug, PartialEq)]
pub enum Trial {
    /// It would change nothing.
    Same,
    /// It would change something.
    Differs,
    /// Others have set its fields otherwise.
    Conflicts(Vec<FieldConflict>),
    /// It would be refused; why.
    Refused(String),
    /// An admission webhook knows no dry runs.
    Unknown,
}

/// An object that was applied and is wanted no more.
#[derive(Clone, Debug, PartialEq)]
pub struct Leftover {
    /// The object.
    pub object: AppliedObject,
    /// As the cluster has it; `None`: it is gone.
    pub live: Option<Box<Value>>,
    /// Why it could not be deleted, when that was tried.
    pub refused: Option<String>,
}

/// Whether we have applied this object, as far as its fields tell.
pub fn is_ours(live: &Value) -> bool {
    is_applied_by(live, ADDON_FIELD_MANAGER)
}

fn is_applied_by(live: &Value, manager: &str) -> bool {
    let entries = live["metadata"]["managedFields"].as_array();
    let ours = |entry: &Value| entry["manager"] == manager && entry["operation"] == "Apply";
    entries.is_some_and(|entries| entries.iter().any(ours))
}

/// Whether an object is as it would be once this manager has applied it.
pub fn is_same(live: &Value, tried: &Value, manager: &str) -> bool {
    let compared = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for field in ["managedFields", "resourceVersion", "generation"] {
                metadata.remove(field);
            }
        }
        object
    };
    is_applied_by(live, manager) && compared(live) == compared(tried)
}

/// The objects of the inventory that are none of these.
pub fn leftovers<'a>(inventory: &'a [AppliedObject], wanted: &[&AppliedObject]) -> Vec<&'a AppliedObject> {
    inventory.iter().filter(|there| !wanted.iter().any(|wanted| wanted.is_same(there))).collect()
}
