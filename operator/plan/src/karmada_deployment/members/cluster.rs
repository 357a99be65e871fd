//! The Cluster of a member in the plane: as it is wanted, and what it says.

use crds::KarmadaDeployment;
use crds::karmada_deployment::SyncMode;
use crds::names::{annotation, finalizer};
use serde_json::{Value, json};

use super::super::names::MEMBERS_NAMESPACE;
use super::super::place::{Manifest, object_of};
use super::action::{Act, Place};
use super::manifest::labels as manifest_labels;
use super::observed::Facts;
use super::target::Target;
use crate::cluster_addon::Deletion;

/// Name of the Secret with the impersonator's token, in the plane.
pub(super) fn impersonator_secret(member: &str) -> String {
    format!("{member}-impersonator")
}

/// The Cluster in the plane. The finalizer keeps its name until nothing of the join is left.
pub(super) fn cluster(object: &KarmadaDeployment, target: &Target, facts: &Facts) -> Value {
    let named = target.named.as_ref();
    let mut labels = json!(named.map(|named| &named.labels).cloned().unwrap_or_default());
    for (key, value) in manifest_labels(object, target).as_object().into_iter().flatten() {
        labels[key] = value.clone();
    }
    let mut spec = json!({ "apiEndpoint": facts.server, "id": facts.uid });
    match target.sync_mode {
        SyncMode::Pull => spec["syncMode"] = json!("Pull"),
        SyncMode::Push => {
            let secret = |name: String| json!({ "namespace": MEMBERS_NAMESPACE, "name": name });
            spec["syncMode"] = json!("Push");
            spec["secretRef"] = secret(target.name.clone());
            spec["impersonatorSecretRef"] = secret(impersonator_secret(&target.name));
        }
    }
    if let Some(named) = named {
        let texts = [("provider", &named.provider), ("region", &named.region)];
        for (field, value) in texts.into_iter().filter_map(|(field, value)| Some((field, value.as_ref()?))) {
            spec[field] = json!(value);
        }
        if let Some(zone) = &named.zone {
            spec["zones"] = json!([zone]);
        }
    }
    json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": {
            "name": target.name,
            "labels": labels,
            "annotations": { (annotation::REACHED_BY): target.reached_by.text() },
            "finalizers": [finalizer::KARMADA_MEMBER],
        },
        "spec": spec,
    })
}

/// The condition by which Karmada says whether it reaches a member.
pub(super) fn readiness(cluster: &Value) -> Option<&Value> {
    cluster["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == "Ready")
}

pub(super) fn is_ready(cluster: &Value) -> bool {
    readiness(cluster).is_some_and(|ready| ready["status"] == "True")
}

pub(super) fn is_terminating(cluster: &Value) -> bool {
    !cluster["metadata"]["deletionTimestamp"].is_null()
}

fn finalizers(cluster: &Value) -> Vec<&str> {
    cluster["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether Karmada is not done with it yet.
pub(super) fn is_held_by_others(cluster: &Value) -> bool {
    finalizers(cluster).iter().any(|one| *one != finalizer::KARMADA_MEMBER)
}

/// Lets a Cluster go that only we hold.
pub(super) fn release(cluster: &Value) -> Option<Act> {
    if is_held_by_others(cluster) { None } else { released(cluster) }
}

/// Takes our finalizer away; none: it is not there.
pub(super) fn released(cluster: &Value) -> Option<Act> {
    let all = finalizers(cluster);
    let others: Vec<&str> = all.iter().copied().filter(|one| *one != finalizer::KARMADA_MEMBER).collect();
    (others.len() < all.len()).then(|| patch_of(cluster, json!({ "metadata": { "finalizers": others } })))
}

/// The patch of this very object of the plane, as it was seen.
pub(super) fn patch_of(live: &Value, mut patch: Value) -> Act {
    for field in ["uid", "resourceVersion"] {
        patch["metadata"][field] = live["metadata"][field].clone();
    }
    Act::Patch { place: Place::Plane, object: object_of(live), patch: Box::new(Manifest(patch)) }
}

/// Deletes this very object; none: it is being deleted.
pub(super) fn deletion(place: Place, live: &Value) -> Option<Act> {
    let uid = live["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let deletion = Deletion { object: object_of(live), uid };
    (!is_terminating(live)).then_some(Act::Delete { place, deletion })
}
