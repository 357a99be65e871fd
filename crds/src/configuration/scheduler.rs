//! The schedulers' configuration.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::flags::{self, FlagValue, GATES_MESSAGE, GATES_RULE, NAMES_MESSAGE, NAMES_RULE};
use crate::references::LocalRef;

/// Flags with a field.
const TYPED: [(&str, &str); 2] = [("config", "configurationRef"), ("feature-gates", "featureGates")];

/// Flags on which the cluster depends.
const OWNED: [&str; 11] = [
    "authentication-kubeconfig",
    "authorization-kubeconfig",
    "bind-address",
    "cert-dir",
    "client-ca-file",
    "emulated-version",
    "kubeconfig",
    "master",
    "min-compatibility-version",
    "secure-port",
    "version",
];
const OWNED_PREFIXES: [&str; 5] =
    ["kube-api-", "leader-elect", "requestheader-", "tls-cert-file", "tls-private-key-file"];

/// The schedulers' configuration. An edit restarts them, one control plane after the other; one that does not come up
/// with it has the former configuration again.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulerSettings {
    /// A ConfigMap with a KubeSchedulerConfiguration under the key `scheduler.yaml`; it must have
    /// `clientConnection.kubeconfig: /etc/kubernetes/scheduler.conf`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration_ref: Option<LocalRef>,
    /// Feature gates of the schedulers, by name; at most 32.
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
