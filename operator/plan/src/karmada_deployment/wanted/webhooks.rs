//! What the plane's API server asks the webhook. While the webhook does not answer none of it can be written: so it is
//! asked for nothing before it does; and, between two versions of it, for nothing that one of them does not answer.

use crds::KarmadaDeployment;
use serde_json::{Value, json};

use super::super::component::Component;
use super::super::machines::served_at;
use super::super::names::{component_name, host_name, labels};
use super::super::place::{Stage, Wanted};
use super::super::release::{Entry, Release};

/// Where the API server asks the webhook.
pub(super) fn url(object: &KarmadaDeployment, path: &str) -> String {
    match served_at(Component::Webhook).filter(|_| object.spec.binary.as_ref().is_some()) {
        Some((host, port)) => format!("https://{host}:{port}/{path}"),
        None => format!("https://{}:443/{path}", host_name(object, &component_name(object, Component::Webhook))),
    }
}

/// What is asked of a webhook of any of these releases: what all of them answer.
pub(super) fn configurations(object: &KarmadaDeployment, authority: &str, releases: &[&Release]) -> Vec<Wanted> {
    let mutating = common(releases, |release| release.mutating).map(|subject| {
        let only_new = matches!(subject.1, "resourcebindings" | "clusterresourcebindings");
        let operations: &[&str] = if only_new { &["CREATE"] } else { &["CREATE", "UPDATE"] };
        webhook(object, authority, "mutate", subject, operations)
    });
    let validating = common(releases, |release| release.validating)
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

/// The entries that all of them have, in the order of the first.
fn common<'a>(
    releases: &'a [&'a Release],
    entries: impl Fn(&Release) -> &'static [Entry] + Copy,
) -> impl Iterator<Item = &'static Entry> {
    let first = releases.first().copied().map(entries).unwrap_or_default();
    first.iter().filter(move |entry| releases.iter().copied().all(|release| entries(release).contains(entry)))
}

fn webhook(
    object: &KarmadaDeployment,
    authority: &str,
    verb: &str,
    (group, resource, is_namespaced, name): &Entry,
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
