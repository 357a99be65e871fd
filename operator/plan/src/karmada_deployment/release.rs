//! What goes with a minor version of Karmada: facts of its release.

use crds::KarmadaDeploymentSpec;

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
    /// Flags that other minors have and this one does not, with the field of the component.
    pub absent_flags: &'static [(&'static str, &'static str)],
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

/// The releases that are known.
pub const RELEASES: &[Release] = &[
    Release {
        minor: (1, 17),
        etcd: "3.6.6-0",
        kubernetes: "1.35.2",
        gates: &[GATES],
        absent_flags: &[("search", "cluster-api-qps"), ("search", "cluster-api-burst")],
    },
    Release {
        minor: (1, 18),
        etcd: "3.6.6-0",
        kubernetes: "1.35.2",
        gates: &[GATES, &["SchedulingOvercommitProtection"]],
        absent_flags: &[
            ("controllerManager", "cluster-lease-duration"),
            ("controllerManager", "cluster-lease-renew-interval-fraction"),
        ],
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
        RELEASES.iter().find(|release| release.minor == spec.version.minor())
    }

    /// Whether programs of it have this feature gate.
    pub fn has_gate(&self, gate: &str) -> bool {
        self.gates.iter().any(|gates| gates.contains(&gate))
    }
}
