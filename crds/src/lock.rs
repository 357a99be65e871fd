//! The lock of a cluster, as the status of the object that forms it has it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a run holds the cluster.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum LockMode {
    /// Alone.
    Exclusive,
    /// Beside other shared ones on other hosts.
    Shared,
    /// Beside any other on other hosts, an exclusive one too: its machines are no part of the cluster yet, or any more.
    Separate,
}

/// A run that holds the cluster.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Name of the PlaybookRun.
    #[schemars(length(max = 253))]
    pub run: String,
    /// Alone, or beside others.
    pub mode: LockMode,
    /// The Hosts it works on.
    #[serde(default)]
    #[schemars(length(max = 5000), inner(length(max = 63)))]
    pub hosts: Vec<String>,
    /// Its token, higher than every one before it in this cluster.
    pub token: i64,
    /// When the lock was taken.
    pub started_at: Time,
}

/// A lock as it is read to start a run: who holds it, and whether it is given to nobody now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LockView<'a> {
    /// The runs that hold it.
    pub operations: &'a [Operation],
    /// Whether the object that it is of is paused.
    pub paused: bool,
}
