//! Clusters that are selected by their labels.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::node_metadata::LabelValue;
use crate::placement::LabelRequirement;

/// Selects clusters by their labels.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelector {
    /// Labels that a cluster must carry, all of them; at most 32.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub match_labels: BTreeMap<String, LabelValue>,
    /// Requirements of a cluster's labels, all of them, beside `matchLabels`; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub match_expressions: Vec<LabelRequirement>,
}

impl ClusterSelector {
    /// Whether a cluster with these labels is selected.
    pub fn selects(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        let has = |key: &String, value: &LabelValue| labels.and_then(|labels| labels.get(key)) == Some(&value.0);
        self.match_labels.iter().all(|(key, value)| has(key, value))
            && self.match_expressions.iter().all(|requirement| requirement.is_met(labels))
    }
}
