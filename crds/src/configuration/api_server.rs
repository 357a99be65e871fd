//! The API servers' configuration.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::flags::{self, FlagValue, GATES_MESSAGE, GATES_RULE, NAMES_MESSAGE, NAMES_RULE};
use crate::references::LocalRef;

/// Flags with a field.
const TYPED: [(&str, &str); 15] = [
    ("audit-log-maxage", "audit.maxAgeDays"),
    ("audit-log-maxbackup", "audit.maxBackups"),
    ("audit-log-maxsize", "audit.maxSizeMegabytes"),
    ("audit-log-path", "audit"),
    ("audit-policy-file", "audit.policyRef"),
    ("authentication-config", "authenticationRef"),
    ("disable-admission-plugins", "admissionPlugins.disable"),
    ("enable-admission-plugins", "admissionPlugins.enable"),
    ("event-ttl", "eventTTLSeconds"),
    ("feature-gates", "featureGates"),
    ("goaway-chance", "goawayChance"),
    ("max-mutating-requests-inflight", "maxMutatingRequestsInflight"),
    ("max-requests-inflight", "maxRequestsInflight"),
    ("request-timeout", "requestTimeoutSeconds"),
    ("shutdown-delay-duration", "shutdownDelaySeconds"),
];

/// Flags on which the cluster depends.
const OWNED: [&str; 22] = [
    "advertise-address",
    "allow-privileged",
    "anonymous-auth",
    "authorization-config",
    "authorization-mode",
    "bind-address",
    "cert-dir",
    "client-ca-file",
    "emulated-version",
    "emulation-forward-compatible",
    "enable-bootstrap-token-auth",
    "endpoint-reconciler-type",
    "kubelet-certificate-authority",
    "kubelet-preferred-address-types",
    "min-compatibility-version",
    "permit-address-sharing",
    "permit-port-sharing",
    "secure-port",
    "storage-backend",
    "storage-media-type",
    "token-auth-file",
    "version",
];
const OWNED_PREFIXES: [&str; 10] = [
    "encryption-provider-config",
    "etcd-",
    "kubelet-client-",
    "proxy-client-",
    "requestheader-",
    "service-account-",
    "service-cluster-ip-range",
    "tls-cert-file",
    "tls-private-key-file",
    "tls-sni-cert-key",
];

/// The API servers' configuration. An edit restarts them, one control plane after the other; one that does not come up
/// with it has the former configuration again.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.authenticationRef) || !has(self.extraArgs) || !self.extraArgs.exists(k, k.startsWith('oidc-'))")
    .message("authenticationRef and flags oidc-* of extraArgs exclude each other: put the issuer into the AuthenticationConfiguration"))]
pub struct ApiServerSettings {
    /// The audit log, `/var/log/kubernetes/audit/audit.log` on each control plane. Absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditSettings>,
    /// A ConfigMap with an AuthenticationConfiguration under the key `authentication.yaml`; it must leave `/livez` and
    /// `/readyz` to anonymous requests. Absent: client certificates and tokens of the cluster alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication_ref: Option<LocalRef>,
    /// Admission plugins that are turned on or off beside Kubernetes' defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission_plugins: Option<AdmissionPlugins>,
    /// After how many seconds a request is given up that is no watch, 1 to 3600. Default 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3600))]
    pub request_timeout_seconds: Option<i32>,
    /// How many seconds Events are kept, 60 to 604800. Default 3600.
    #[serde(default, rename = "eventTTLSeconds", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 604_800))]
    pub event_ttl_seconds: Option<i32>,
    /// Reading requests that are served at once at most, 1 to 100000. Default 400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_requests_inflight: Option<i32>,
    /// Writing requests that are served at once at most, 1 to 100000. Default 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_mutating_requests_inflight: Option<i32>,
    /// How likely a client is sent to another API server with a request: `0.001` is one in a thousand, `0.02` the most.
    /// Default: never. Only behind a load balancer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 6), regex(pattern = r"^0\.(0[01][0-9]{0,2}|02)$"))]
    pub goaway_chance: Option<String>,
    /// For how many seconds an API server that is to end still serves while `/readyz` fails, 0 to 25. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 25))]
    pub shutdown_delay_seconds: Option<i32>,
    /// Feature gates of the API servers, by name; at most 32.
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

/// What is written to the audit log, and how much of it is kept.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditSettings {
    /// A ConfigMap with an audit Policy under the key `audit-policy.yaml`.
    pub policy_ref: LocalRef,
    /// Days for which a file is kept, 1 to 3650. Default 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3650))]
    pub max_age_days: Option<i32>,
    /// Files of before that are kept at most, 1 to 1000. Default 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_backups: Option<i32>,
    /// Size at which a file is full, in megabytes, 1 to 10000. Default 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub max_size_megabytes: Option<i32>,
}

/// Admission plugins beside Kubernetes' defaults.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.disable) || !self.disable.exists(p, p == 'NodeRestriction')")
    .message("admissionPlugins.disable: NodeRestriction keeps kubelets to their own Nodes and stays on"))]
#[x_kube(validation = Rule::new("!has(self.enable) || !has(self.disable) || !self.enable.exists(p, p in self.disable)")
    .message("admissionPlugins: a plugin is in enable or in disable"))]
pub struct AdmissionPlugins {
    /// Those that are turned on, e.g. `AlwaysPullImages`; `NodeRestriction` always is. At most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]*$")))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub enable: Vec<String>,
    /// Those that are turned off, e.g. `DefaultStorageClass`. At most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]*$")))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub disable: Vec<String>,
}
