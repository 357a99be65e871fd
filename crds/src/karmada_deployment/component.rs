//! What all components of a plane may be given.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ComponentVersion;
use crate::cluster_deployment::PodToleration;
use crate::configuration::flags::{FlagValue, GATES_MESSAGE, GATES_RULE, NAMES_MESSAGE, NAMES_RULE};
use crate::node_metadata::{
    ANNOTATION_KEYS_MESSAGE, ANNOTATION_KEYS_RULE, AnnotationValue, LABEL_KEYS_MESSAGE, LABEL_KEYS_RULE, LabelValue,
};

/// CEL: no key is one by which the operator finds and rolls Pods.
const OWN_KEYS_RULE: &str = "self.all(k, !k.startsWith('clusterwright.dev/') && !k.startsWith('app.kubernetes.io/'))";
const OWN_KEYS_MESSAGE: &str = "keys below clusterwright.dev and app.kubernetes.io are the operator's: leave them out";
const RESOURCES_RULE: &str = "self.all(k, k in ['cpu', 'memory', 'ephemeral-storage'])";
const RESOURCES_MESSAGE: &str = "resources: allowed are cpu, memory and ephemeral-storage";

/// A component: how many, which version, and what it is started with.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentSettings {
    /// How many Pods, 1 to 9. Of those that have a leader one works, and the others stand by. Default 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 9))]
    pub replicas: i32,
    /// Its version, without `v`. Of `apiServer` and `kubeControllerManager` that of Kubernetes; of `scheduler` and
    /// `estimator` another patch version of the same minor; others follow `spec.version`. Default: what goes with
    /// `spec.version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<ComponentVersion>,
    /// Further flags, name to value; at most 32. None that the plane depends on. One that the program does not know
    /// keeps it from starting, which `status.message` shows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    #[x_kube(validation = Rule::new(NAMES_RULE).message(NAMES_MESSAGE))]
    pub extra_args: BTreeMap<String, FlagValue>,
    /// Its feature gates, by name; at most 32. Of Karmada's programs an unknown one is reported before anything is
    /// changed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    #[x_kube(validation = Rule::new(GATES_RULE).message(GATES_MESSAGE))]
    pub feature_gates: BTreeMap<String, bool>,
    /// What its Pods are given.
    #[serde(flatten)]
    pub pod: PodSettings,
}

impl Default for ComponentSettings {
    fn default() -> Self {
        Self {
            replicas: one(),
            version: None,
            extra_args: BTreeMap::new(),
            feature_gates: BTreeMap::new(),
            pod: PodSettings::default(),
        }
    }
}

/// What Pods are given. An edit rolls them.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSettings {
    /// What its container requests, and may use at most. Default: nothing, without a limit.
    #[serde(default)]
    pub resources: Resources,
    /// Further labels of the Pods; at most 32.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    #[x_kube(validation = Rule::new(LABEL_KEYS_RULE).message(LABEL_KEYS_MESSAGE))]
    #[x_kube(validation = Rule::new(OWN_KEYS_RULE).message(OWN_KEYS_MESSAGE))]
    pub labels: BTreeMap<String, LabelValue>,
    /// Further annotations of the Pods; at most 32.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    #[x_kube(validation = Rule::new(ANNOTATION_KEYS_RULE).message(ANNOTATION_KEYS_MESSAGE))]
    #[x_kube(validation = Rule::new(OWN_KEYS_RULE).message(OWN_KEYS_MESSAGE))]
    pub annotations: BTreeMap<String, AnnotationValue>,
    /// As in a PodSpec; the host cluster checks it. Default: Pods of a component prefer different nodes.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "affinity_schema")]
    pub affinity: Map<String, Value>,
    /// Taints that the Pods tolerate; at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub tolerations: Vec<PodToleration>,
    /// Their PriorityClass. Default: the host cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub priority_class_name: Option<String>,
}

/// What a container requests, and may use at most.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// Requested: `cpu`, `memory`, `ephemeral-storage`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 3))]
    #[x_kube(validation = Rule::new(RESOURCES_RULE).message(RESOURCES_MESSAGE))]
    pub requests: BTreeMap<String, Quantity>,
    /// At most: `cpu`, `memory`, `ephemeral-storage`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 3))]
    #[x_kube(validation = Rule::new(RESOURCES_RULE).message(RESOURCES_MESSAGE))]
    pub limits: BTreeMap<String, Quantity>,
}

impl Resources {
    /// Whether nothing is requested or limited.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.limits.is_empty()
    }
}

/// An amount as Kubernetes writes it: `250m`, `2`, `512Mi`, `8Gi`.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(transparent)]
pub struct Quantity(
    #[schemars(length(min = 1, max = 24), regex(pattern = r"^[0-9]{1,15}([.][0-9]{1,3})?(m|k|[KMGTPE]i|[MGTPE])?$"))]
    pub String,
);

fn one() -> i32 {
    1
}

fn affinity_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "description": "As in a PodSpec; the host cluster checks it. Default: Pods of a component prefer different nodes.",
        "x-kubernetes-preserve-unknown-fields": true,
        "x-kubernetes-map-type": "atomic",
        "maxProperties": 3
    })
}
