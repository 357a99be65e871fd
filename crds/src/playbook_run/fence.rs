//! The fence of a run, and whose a fence is.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a machine's guard compares, the epoch first: commands of a lower fence than the highest seen are refused.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fence {
    /// The Host's claim epoch.
    pub epoch: i64,
    /// The run's token, which grows within one cluster.
    pub token: i64,
}

/// Whose the highest fence is that a machine's guard knows: who has the machine, or was the last to have it. The
/// machine says so, hostile until checked.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FenceOwner {
    /// Name of the cluster.
    #[schemars(length(max = 512))]
    pub cluster: String,
    /// The run, `NAMESPACE/NAME`.
    #[schemars(length(max = 512))]
    pub run: String,
    /// UID of the Machine that had claimed the Host; absent where the machine does not know it.
    #[serde(default, rename = "machineUID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub machine_uid: Option<String>,
    /// The newest of its cluster's `status.comparisons` that the run was told of: the run is known to a metadata
    /// cluster that has the same one. Absent: it was told of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_since: Option<Time>,
}

impl FenceOwner {
    /// `NAMESPACE/NAME` of the cluster.
    pub fn cluster_path(&self) -> String {
        let namespace = self.run.split_once('/').map_or("", |(namespace, _)| namespace);
        format!("{namespace}/{}", self.cluster)
    }
}
