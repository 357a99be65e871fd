//! What the plane's API server asks the webhook, as Karmada 1.17 and 1.18 have it. While the webhook does not answer
//! none of it can be written: so it is asked for nothing before it does.

use crds::KarmadaDeployment;
use serde_json::{Value, json};

use super::super::component::Component;
use super::super::names::{component_name, host_name, labels};
use super::super::place::{Stage, Wanted};

/// What is asked about: group, resource, whether it is in namespaces, and what begins the name of the webhook.
type Subject = (&'static str, &'static str, bool, &'static str);

const fn policy(resource: &'static str, is_namespaced: bool, name: &'static str) -> Subject {
    ("policy.karmada.io", resource, is_namespaced, name)
}

/// Completed when it is written.
const MUTATED: [Subject; 8] = [
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
const VALIDATED: [Subject; 13] = [
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

/// Where the API server asks the webhook.
pub(super) fn url(object: &KarmadaDeployment, path: &str) -> String {
    format!("https://{}:443/{path}", host_name(object, &component_name(object, Component::Webhook)))
}

pub(super) fn configurations(object: &KarmadaDeployment, authority: &str) -> Vec<Wanted> {
    let mutating = MUTATED.iter().map(|subject| {
        let only_new = matches!(subject.1, "resourcebindings" | "clusterresourcebindings");
        let operations: &[&str] = if only_new { &["CREATE"] } else { &["CREATE", "UPDATE"] };
        webhook(object, authority, "mutate", subject, operations)
    });
    let validating = VALIDATED
        .iter()
        .map(|subject| webhook(object, authority, "validate", subject, &["CREATE", "UPDATE"]))
        .chain([deletion_protection(object, authority)]);
    let configuration = |kind: &str, name: &str, webhooks: Vec<Value>| {
        let manifest = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": { "name": name, "labels": labels(object) },
            "webhooks": webhooks,
        });
        Wanted::in_plane(Stage::WebhookConfigurations, manifest)
    };
    vec![
        configuration("MutatingWebhookConfiguration", "mutating-config", mutating.collect()),
        configuration("ValidatingWebhookConfiguration", "validating-config", validating.collect()),
    ]
}

fn webhook(
    object: &KarmadaDeployment,
    authority: &str,
    verb: &str,
    (group, resource, is_namespaced, name): &Subject,
    operations: &[&str],
) -> Value {
    let interprets = *resource == "resourceinterpretercustomizations";
    let counts = verb == "validate" && *resource == "resourcebindings";
    json!({
        "name": format!("{name}.karmada.io"),
        "rules": [{
            "apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": operations,
            "scope": if *is_namespaced { "Namespaced" } else { "Cluster" },
        }],
        "clientConfig": { "url": url(object, &format!("{verb}-{name}")), "caBundle": authority },
        "failurePolicy": "Fail",
        "sideEffects": if counts { "NoneOnDryRun" } else { "None" },
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": if interprets { 10 } else { 3 },
    })
}

/// What is labelled so is not deleted, of whatever kind it is.
fn deletion_protection(object: &KarmadaDeployment, authority: &str) -> Value {
    json!({
        "name": "resourcedeletionprotection.karmada.io",
        "rules": [{
            "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["DELETE"], "scope": "*",
        }],
        "objectSelector": { "matchExpressions": [
            { "key": "resourcetemplate.karmada.io/deletion-protected", "operator": "Exists" },
        ] },
        "clientConfig": { "url": url(object, "validate-resourcedeletionprotection"), "caBundle": authority },
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 3,
    })
}
