//! The controller-managers' configuration.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::flags::{self, FlagValue, GATES_MESSAGE, GATES_RULE, NAMES_MESSAGE, NAMES_RULE};

/// Flags with a field.
const TYPED: [(&str, &str); 3] = [
    ("feature-gates", "featureGates"),
    ("node-monitor-grace-period", "nodeMonitorGracePeriodSeconds"),
    ("terminated-pod-gc-threshold", "terminatedPodGCThreshold"),
];

/// Flags on which the cluster depends.
const OWNED: [&str; 18] = [
    "allocate-node-cidrs",
    "authentication-kubeconfig",
    "authorization-kubeconfig",
    "bind-address",
    "cert-dir",
    "client-ca-file",
    "cluster-cidr",
    "cluster-name",
    "controllers",
    "emulated-version",
    "kubeconfig",
    "master",
    "min-compatibility-version",
    "root-ca-file",
    "secure-port",
    "service-cluster-ip-range",
    "use-service-account-credentials",
    "version",
];
const OWNED_PREFIXES: [&str; 8] = [
    "cluster-signing-",
    "kube-api-",
    "leader-elect",
    "node-cidr-mask-size",
    "requestheader-",
    "service-account-",
    "tls-cert-file",
    "tls-private-key-file",
];

/// The controller-managers' configuration. An edit restarts them, one control plane after the other; one that does not
/// come up with it has the former configuration again.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControllerManagerSettings {
    /// After how many seconds of silence a Node is no longer Ready, 20 to 3600; several times the kubelet's
    /// `nodeStatusUpdateFrequencySeconds`. Default 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 20, max = 3600))]
    pub node_monitor_grace_period_seconds: Option<i32>,
    /// How many Pods that have ended are kept before they are deleted, 1 to 100000. Default 12500.
    #[serde(default, rename = "terminatedPodGCThreshold", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub terminated_pod_gc_threshold: Option<i32>,
    /// Feature gates of the controller-managers, by name; at most 32.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    #[x_kube(validation = Rule::new(GATES_RULE).message(GATES_MESSAGE))]
    pub feature_gates: BTreeMap<String, bool>,
    /// Further flags, name to value; at most 32. None that has a field here, and none that the cluster depends on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    #[x_kube(validation = Rule::new(NAMES_RULE).message(NAMES_MESSAGE))]
    #[x_kube(validation = flags::without_typed(&TYPED))]
    #[x_kube(validation = flags::without_owned(&OWNED, &OWNED_PREFIXES))]
    pub extra_args: BTreeMap<String, FlagValue>,
}
