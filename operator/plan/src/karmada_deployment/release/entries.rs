//! What the plane's API server asks the webhook, as Karmada 1.17 and 1.18 have it. What one of them alone answers is an
//! entry of that release's own list.

/// What is asked about: group, resource, whether it is in namespaces, and what begins the name of the webhook.
pub(in super::super) type Entry = (&'static str, &'static str, bool, &'static str);

const fn policy(resource: &'static str, is_namespaced: bool, name: &'static str) -> Entry {
    ("policy.karmada.io", resource, is_namespaced, name)
}

/// Completed when it is written.
pub(super) const MUTATING: &[Entry] = &[
    policy("propagationpolicies", true, "propagationpolicy"),
    policy("clusterpropagationpolicies", false, "clusterpropagationpolicy"),
    policy("overridepolicies", true, "overridepolicy"),
    ("work.karmada.io", "resourcebindings", true, "resourcebinding"),
    ("work.karmada.io", "clusterresourcebindings", false, "clusterresourcebinding"),
    ("work.karmada.io", "works", true, "work"),
    ("autoscaling.karmada.io", "federatedhpas", true, "federatedhpa"),
    ("networking.karmada.io", "multiclusterservices", true, "multiclusterservice"),
];

/// Checked when it is written.
pub(super) const VALIDATING: &[Entry] = &[
    policy("propagationpolicies", true, "propagationpolicy"),
    policy("clusterpropagationpolicies", false, "clusterpropagationpolicy"),
    policy("overridepolicies", true, "overridepolicy"),
    policy("clusteroverridepolicies", false, "clusteroverridepolicy"),
    ("config.karmada.io", "resourceinterpreterwebhookconfigurations", false, "resourceinterpreterwebhookconfiguration"),
    ("config.karmada.io", "resourceinterpretercustomizations", false, "resourceinterpretercustomization"),
    policy("federatedresourcequotas", true, "federatedresourcequota"),
    ("networking.karmada.io", "multiclusteringresses", true, "multiclusteringress"),
    ("autoscaling.karmada.io", "federatedhpas", true, "federatedhpa"),
    ("autoscaling.karmada.io", "cronfederatedhpas", true, "cronfederatedhpa"),
    ("networking.karmada.io", "multiclusterservices", true, "multiclusterservice"),
    ("work.karmada.io", "resourcebindings", true, "resourcebinding"),
    policy("clustertaintpolicies", false, "clustertaintpolicy"),
];
