//! What a run brings to machines of a Karmada control plane.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of a Karmada control plane that a run brings to machines.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KarmadaPart {
    /// Which one, e.g. `scheduler`, `balancer`.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub part: String,
    /// What it is to be there, by Host: a digest of its program, its flags and the files that these name, 1 to 64
    /// letters and digits each. Where something else is wanted by the time the run begins, it does not begin.
    #[schemars(extend("maxProperties" = 16))]
    pub digests: BTreeMap<String, Digest>,
}

/// A digest: 1 to 64 letters and digits.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[serde(transparent)]
pub struct Digest(#[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9]+$"))] pub String);
