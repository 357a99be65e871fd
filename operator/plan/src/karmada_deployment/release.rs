//! What goes with a minor version of Karmada: facts of its release. All that differs between minors is here.

mod entries;

use crds::KarmadaDeploymentSpec;

pub(super) use entries::Entry;
use entries::{MUTATING, VALIDATING};

/// What goes with a minor version.
#[derive(Debug)]
pub struct Release {
    /// `(1, 18)`.
    pub minor: (u32, u32),
    /// The tag of etcd's image.
    pub etcd: &'static str,
    /// The version of kube-apiserver and kube-controller-manager.
    pub kubernetes: &'static str,
    /// The feature gates of Karmada's programs: all that have any know all of them.
    pub gates: &'static [&'static [&'static str]],
    /// The fields of the components of Karmada that know `--feature-gates`; to others it is an unknown flag.
    pub gated: &'static [&'static str],
    /// Flags that other minors have and this one does not, with the field of the component.
    pub absent_flags: &'static [(&'static str, &'static str)],
    /// What its webhook completes when it is written.
    pub(super) mutating: &'static [Entry],
    /// What its webhook checks when it is written.
    pub(super) validating: &'static [Entry],
}

/// Gates of 1.17, and those that every program of the kind has.
const GATES: &[&str] = &[
    "AllAlpha",
    "AllBeta",
    "ContextualLogging",
    "ControllerPriorityQueue",
    "CustomizedClusterResourceModeling",
    "Failover",
    "FederatedQuotaEnforcement",
    "GracefulEviction",
    "LoggingAlphaOptions",
    "LoggingBetaOptions",
    "MultiClusterService",
    "MultiplePodTemplatesScheduling",
    "PolicyPreemption",
    "PriorityBasedScheduling",
    "PropagateDeps",
    "ResourceQuotaEstimate",
    "StatefulFailoverInjection",
    "WorkloadAffinity",
];

/// Components with `--feature-gates`, of both.
const GATED: &[&str] = &["aggregatedApiServer", "controllerManager", "estimator", "scheduler", "webhook"];

/// The releases that are known.
pub const RELEASES: &[Release] = &[
    Release {
        minor: (1, 17),
        etcd: "3.6.6-0",
        kubernetes: "1.35.2",
        gates: &[GATES],
        gated: GATED,
        absent_flags: &[("search", "cluster-api-qps"), ("search", "cluster-api-burst")],
        mutating: MUTATING,
        validating: VALIDATING,
    },
    Release {
        minor: (1, 18),
        etcd: "3.6.6-0",
        kubernetes: "1.35.2",
        gates: &[GATES, &["SchedulingOvercommitProtection"]],
        gated: GATED,
        absent_flags: &[
            ("controllerManager", "cluster-lease-duration"),
            ("controllerManager", "cluster-lease-renew-interval-fraction"),
        ],
        mutating: MUTATING,
        validating: VALIDATING,
    },
];

/// The CustomResourceDefinitions of both.
pub const DEFINITIONS: [&str; 19] = [
    "clusteroverridepolicies.policy.karmada.io",
    "clusterpropagationpolicies.policy.karmada.io",
    "clusterresourcebindings.work.karmada.io",
    "clustertaintpolicies.policy.karmada.io",
    "cronfederatedhpas.autoscaling.karmada.io",
    "federatedhpas.autoscaling.karmada.io",
    "federatedresourcequotas.policy.karmada.io",
    "multiclusteringresses.networking.karmada.io",
    "multiclusterservices.networking.karmada.io",
    "overridepolicies.policy.karmada.io",
    "propagationpolicies.policy.karmada.io",
    "remedies.remedy.karmada.io",
    "resourcebindings.work.karmada.io",
    "resourceinterpretercustomizations.config.karmada.io",
    "resourceinterpreterwebhookconfigurations.config.karmada.io",
    "serviceexports.multicluster.x-k8s.io",
    "serviceimports.multicluster.x-k8s.io",
    "workloadrebalancers.apps.karmada.io",
    "works.work.karmada.io",
];

impl Release {
    /// That of the version wanted; none: its minor is not known here.
    pub fn wanted(spec: &KarmadaDeploymentSpec) -> Option<&'static Release> {
        Self::find(spec.version.minor())
    }

    /// That of a minor; none: it is not known here.
    pub(super) fn find(minor: (u32, u32)) -> Option<&'static Release> {
        RELEASES.iter().find(|release| release.minor == minor)
    }

    /// Whether programs of it have this feature gate.
    pub fn has_gate(&self, gate: &str) -> bool {
        self.gates.iter().any(|gates| gates.contains(&gate))
    }
}
