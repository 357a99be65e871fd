//! The executor of a cluster's runs, and where its Pods are scheduled in the metadata cluster.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::node_metadata::{LABEL_KEYS_MESSAGE, LABEL_KEYS_RULE, LabelValue, TaintEffect};
use crate::references::LocalRef;

/// The executor of a cluster's runs.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Executor {
    /// Image of the executor. Default: the operator's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[a-z0-9]([-a-z0-9.:/_@]|[A-Za-z0-9])*$"))]
    pub image: Option<String>,
    /// Attempts at the same thing without progress before a person must ask for another (annotation `retry`), 1 to 100.
    /// Default 3.
    #[serde(default = "default_max_attempts")]
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: i32,
    /// Ended runs that are kept, with their logs, 1 to 500, and as many probes beside them; the oldest go first.
    /// Default 20.
    #[serde(default = "default_history_limit")]
    #[schemars(range(min = 1, max = 500))]
    pub history_limit: i32,
    /// A ConfigMap with custom playbooks: `<name>.yml`, and beside it, where there are, `<name>.probe.yml` (read-only:
    /// whether it is done) and `<name>.schema.json` (JSON Schema of its variables).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_playbooks_ref: Option<LocalRef>,
    /// How its Pods are scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<ExecutorPod>,
}

impl Default for Executor {
    fn default() -> Self {
        Self {
            image: None,
            max_attempts: default_max_attempts(),
            history_limit: default_history_limit(),
            custom_playbooks_ref: None,
            pod: None,
        }
    }
}

fn default_max_attempts() -> i32 {
    3
}

fn default_history_limit() -> i32 {
    20
}

/// What the executor's Pods are given beside what runs need. All of it as in a PodSpec.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutorPod {
    /// Secrets of type `kubernetes.io/dockerconfigjson` in this namespace, with which the executor's image is pulled;
    /// at most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub image_pull_secrets: Vec<LocalRef>,
    /// Labels of the nodes that may run it, all of them; at most 32.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    #[x_kube(validation = Rule::new(LABEL_KEYS_RULE).message(LABEL_KEYS_MESSAGE))]
    pub node_selector: BTreeMap<String, LabelValue>,
    /// Taints that it tolerates, beside those of a node that is lost (for 30 s); at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub tolerations: Vec<PodToleration>,
    /// Its PriorityClass. Default: the metadata cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub priority_class_name: Option<String>,
}

/// A taint that is tolerated.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.value) || !has(self.operator) || self.operator == 'Equal'")
    .message("with operator Exists every value is tolerated: leave value out"))]
#[x_kube(validation = Rule::new("has(self.key) || (has(self.operator) && self.operator == 'Exists')")
    .message("without key every taint is tolerated: that takes operator Exists"))]
pub struct PodToleration {
    /// The taint's key. Absent: every taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 317),
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
    )]
    pub key: Option<String>,
    /// Whether the value counts. Default `Equal`.
    #[serde(default)]
    pub operator: TolerationOperator,
    /// The taint's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<LabelValue>,
    /// Absent: every effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
}

/// How a toleration matches.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum TolerationOperator {
    /// The value must be the same.
    #[default]
    Equal,
    /// Every value.
    Exists,
}
