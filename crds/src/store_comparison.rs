//! What is known of the time before an operator took the metadata cluster up again.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machines of a cluster were compared with the metadata cluster, which may have been set back to an older state.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoreComparison {
    /// When an operator had taken the metadata cluster up again (the annotation `resumed-at` of its Lease).
    pub since: Time,
    /// The highest token that had been given out before, as the metadata cluster knew it: of a later run from before
    /// then it knows nothing.
    #[schemars(range(min = 0))]
    pub last_token: i64,
}
