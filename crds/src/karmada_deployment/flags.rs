//! Flags of a plane's programs that are the operator's, and rules over what a component may be given.

use kube::core::{Message, Rule};

use crate::configuration::flags::without_owned_in;

/// Flags by their names, and by how these begin.
type Owned = (&'static [&'static str], &'static [&'static str]);

pub(super) const ETCD: Owned = (
    &[
        "auto-tls",
        "cert-file",
        "client-cert-auth",
        "config-file",
        "data-dir",
        "enable-grpc-gateway",
        "key-file",
        "name",
        "strict-reconfig-check",
        "trusted-ca-file",
    ],
    &["advertise-", "discovery", "force-new-cluster", "initial-", "listen-", "peer-"],
);
pub(super) const API_SERVER: Owned = (
    &[
        "allow-privileged",
        "authorization-mode",
        "bind-address",
        "client-ca-file",
        "disable-admission-plugins",
        "enable-admission-plugins",
        "enable-bootstrap-token-auth",
        "encryption-provider-config",
        "feature-gates",
        "secure-port",
        "service-cluster-ip-range",
    ],
    &["etcd-", "proxy-client-", "requestheader-", "service-account-", "tls-cert-file", "tls-private-key-file"],
);
pub(super) const KUBE_CONTROLLER_MANAGER: Owned = (
    &[
        "allocate-node-cidrs",
        "bind-address",
        "client-ca-file",
        "cluster-name",
        "controllers",
        "feature-gates",
        "kubeconfig",
        "root-ca-file",
        "secure-port",
        "service-account-private-key-file",
        "use-service-account-credentials",
    ],
    &["authentication-", "authorization-", "cluster-signing-", "leader-elect", "requestheader-", "tls-"],
);
pub(super) const AGGREGATED_API_SERVER: Owned = (
    &["bind-address", "client-ca-file", "feature-gates", "kubeconfig", "secure-port"],
    &["authentication-", "authorization-", "etcd-", "requestheader-", "tls-cert-file", "tls-private-key-file"],
);
pub(super) const SEARCH: Owned = AGGREGATED_API_SERVER;
pub(super) const METRICS_ADAPTER: Owned = (
    &["bind-address", "client-ca-file", "kubeconfig", "metrics-bind-address", "secure-port"],
    &["authentication-", "authorization-", "requestheader-", "tls-cert-file", "tls-private-key-file"],
);
pub(super) const CONTROLLER_MANAGER: Owned =
    (&["feature-gates", "health-probe-bind-address", "kubeconfig", "metrics-bind-address"], &["leader-elect"]);
pub(super) const SCHEDULER: Owned = (
    &[
        "enable-scheduler-estimator",
        "feature-gates",
        "health-probe-bind-address",
        "insecure-skip-estimator-verify",
        "kubeconfig",
        "metrics-bind-address",
        "scheduler-name",
    ],
    &["leader-elect", "scheduler-estimator-"],
);
pub(super) const DESCHEDULER: Owned = (
    &["health-probe-bind-address", "insecure-skip-estimator-verify", "kubeconfig", "metrics-bind-address"],
    &["leader-elect", "scheduler-estimator-"],
);
pub(super) const ESTIMATOR: Owned = (
    &[
        "cluster-name",
        "feature-gates",
        "health-probe-bind-address",
        "insecure-skip-grpc-client-verify",
        "kubeconfig",
        "master",
        "metrics-bind-address",
        "server-port",
    ],
    &["grpc-"],
);
pub(super) const WEBHOOK: Owned = (
    &[
        "bind-address",
        "cert-dir",
        "feature-gates",
        "health-probe-bind-address",
        "kubeconfig",
        "metrics-bind-address",
        "secure-port",
    ],
    &["tls-cert-file-name", "tls-private-key-file-name"],
);

/// Refuses the operator's flags in `extraArgs`.
pub(super) fn owned((names, prefixes): Owned) -> Rule {
    without_owned_in("self.extraArgs", names, prefixes)
}

/// Refuses a version of a component that moves with the plane.
pub(super) fn version_of_plane(field: &str) -> Rule {
    let message =
        format!("{field}.version: it follows spec.version, since what it serves belongs to that: leave it out");
    Rule::new("!has(self.version)").message(Message::Message(message))
}

/// Refuses feature gates of a program that knows no flag for them.
pub(super) fn without_gates(field: &str) -> Rule {
    let message = format!("{field}.featureGates: this program has none, and would not start: leave them out");
    Rule::new("!has(self.featureGates)").message(Message::Message(message))
}
