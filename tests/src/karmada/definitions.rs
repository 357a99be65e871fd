//! CustomResourceDefinitions that stand in for Karmada's: their names, and schemas that take anything.

use serde_json::{Value, json};

/// Names, kinds, and whether their objects are in namespaces.
const DEFINITIONS: [(&str, &str, bool); 19] = [
    ("clusteroverridepolicies.policy.karmada.io", "ClusterOverridePolicy", false),
    ("clusterpropagationpolicies.policy.karmada.io", "ClusterPropagationPolicy", false),
    ("clusterresourcebindings.work.karmada.io", "ClusterResourceBinding", false),
    ("clustertaintpolicies.policy.karmada.io", "ClusterTaintPolicy", false),
    ("cronfederatedhpas.autoscaling.karmada.io", "CronFederatedHPA", true),
    ("federatedhpas.autoscaling.karmada.io", "FederatedHPA", true),
    ("federatedresourcequotas.policy.karmada.io", "FederatedResourceQuota", true),
    ("multiclusteringresses.networking.karmada.io", "MultiClusterIngress", true),
    ("multiclusterservices.networking.karmada.io", "MultiClusterService", true),
    ("overridepolicies.policy.karmada.io", "OverridePolicy", true),
    ("propagationpolicies.policy.karmada.io", "PropagationPolicy", true),
    ("remedies.remedy.karmada.io", "Remedy", false),
    ("resourcebindings.work.karmada.io", "ResourceBinding", true),
    ("resourceinterpretercustomizations.config.karmada.io", "ResourceInterpreterCustomization", false),
    ("resourceinterpreterwebhookconfigurations.config.karmada.io", "ResourceInterpreterWebhookConfiguration", false),
    ("serviceexports.multicluster.x-k8s.io", "ServiceExport", true),
    ("serviceimports.multicluster.x-k8s.io", "ServiceImport", true),
    ("workloadrebalancers.apps.karmada.io", "WorkloadRebalancer", false),
    ("works.work.karmada.io", "Work", true),
];

fn definition((name, kind, is_namespaced): &(&str, &str, bool)) -> Value {
    let (plural, group) = name.split_once('.').unwrap_or_default();
    let version = |version: &str, storage: bool| {
        json!({
            "name": version, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    let versions = match plural.ends_with("bindings") {
        true => vec![version("v1alpha1", false), version("v1alpha2", true)],
        false => vec![version("v1alpha1", true)],
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": "unapproved, stands in for Karmada's"}},
        "spec": {
            "group": group, "scope": if *is_namespaced { "Namespaced" } else { "Cluster" },
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": versions,
        },
    })
}

/// The definitions that stand in for Karmada's, in one file.
pub fn stand_ins() -> String {
    DEFINITIONS.iter().map(|one| definition(one).to_string()).collect::<Vec<_>>().join("\n---\n")
}
