//! How preflight judges.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// How preflight judges.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preflight {
    /// Names of findings that count as warnings, as a run's status shows them, e.g. `memory`; at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 64), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$")))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub ignore: Vec<String>,
    /// True: an operating system other than the supported ones is a warning. Default false.
    #[serde(default)]
    pub allow_unsupported_distribution: bool,
}
