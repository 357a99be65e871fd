//! What a machine says of a service of its Karmada control plane.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a machine says of a service of its Karmada control plane.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PartSeen {
    /// The component, `balancer`, or `estimators`: those of all members.
    #[schemars(length(max = 63))]
    pub name: String,
    /// What its unit was made of, letters, digits, dots and dashes; absent: it has none of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub digest: Option<String>,
    /// Whether its unit is active and it says that it is well.
    #[serde(default)]
    pub healthy: bool,
    /// What is wrong with it; control characters stripped, cut to 256 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub message: Option<String>,
    /// Of `estimators`: those that do not work, by the names of their members, and why; cut to 128 characters each, at
    /// most 256.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    pub members: BTreeMap<String, String>,
}
