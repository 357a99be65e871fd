//! What is still to be done to the machines of a cluster, for its spec as it stands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::step::Role;

/// What is still to be done to machines that stay. Machines that are added or removed are no part of it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutPlan {
    /// All of it in one line, e.g. `Upgrade 1.34.4 -> 1.35.4: 3 control planes, 197 workers (restarts, drained)`.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub summary: String,
    /// What stands for the disruptive changes that are wanted: `clusterwright.dev/approve: plan.<digest>` approves them
    /// all, on every machine. It stays the same while machines are done, and another change that disrupts has another
    /// one.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub digest: String,
    /// The disruptive changes that were approved, until none is left. Empty: none was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(max = 128)))]
    pub approved: Vec<String>,
    /// The changes, in the order in which they are made, each with the machines that do not have it yet; at most 64.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub changes: Vec<PlannedChange>,
}

/// One change, on the machines of one role.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedChange {
    /// What is done.
    pub operation: PlannedOperation,
    /// What is changed: versions, `1.34.4 -> 1.35.4`, or a field, `controlPlane.certSANs`.
    #[schemars(length(max = 128))]
    pub what: String,
    /// What the machines are in the cluster.
    pub role: Role,
    /// How many machines do not have it yet.
    pub machines: i32,
    /// Names of the first of these Machines; at most 5.
    #[serde(default)]
    #[schemars(length(max = 5), inner(length(max = 63)))]
    pub names: Vec<String>,
    /// Whether something restarts on them that serves.
    pub disruptive: bool,
    /// Whether their Nodes are drained for it.
    pub drained: bool,
}

/// What is done to machines.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
pub enum PlannedOperation {
    /// They are brought to another version of Kubernetes.
    Upgrade,
    /// They are brought to settings that were edited.
    Configure,
    /// Their certificates are renewed.
    Renew,
    /// Steps are played again on machines that differ from what is wanted.
    Repair,
}
