//! Whether what a member has is what Karmada would write there. It writes the whole object: what the manifest does not
//! say is gone afterwards, but for labels, annotations, and what each cluster sets itself.

use serde_json::Value;

/// Kinds in which a cluster sets fields of the spec, which Karmada leaves as they are: those that a manifest does not
/// have are no difference.
const COMPLETED: [&str; 8] = [
    "Pod",
    "Service",
    "ServiceAccount",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Job",
    "Namespace",
    "CustomResourceDefinition",
];
/// By this label, "true", replicas stay those of the member.
const RETAINS_REPLICAS: &str = "resourcetemplate.karmada.io/retain-replicas";

/// Whether an object is marked as put there by Karmada, which leaves all else alone.
pub(super) fn is_managed(live: &Value) -> bool {
    live["metadata"]["labels"]["karmada.io/managed"] == "true"
}

/// Whether Karmada writes a manifest over an object.
pub(super) fn writes_over(live: &Value, wanted: &Value) -> bool {
    is_managed(live) || wanted["metadata"]["annotations"]["work.karmada.io/conflict-resolution"] == "overwrite"
}

/// Whether an object has what a manifest says and, where its cluster sets nothing itself, nothing else.
pub(super) fn is_same(live: &Value, wanted: &Value) -> bool {
    let kind = wanted["kind"].as_str().unwrap_or_default();
    let is_token = kind == "Secret" && wanted["type"] == "kubernetes.io/service-account-token";
    let compare = if COMPLETED.contains(&kind) || is_token { has } else { equals };
    let (mut live, mut wanted) = (live.clone(), wanted.clone());
    if wanted["metadata"]["labels"][RETAINS_REPLICAS] == "true" {
        wanted["spec"]["replicas"] = live["spec"]["replicas"].clone();
    }
    let added = ["labels", "annotations"];
    let is_added = |field: &&str| has(&live["metadata"][*field], &wanted["metadata"][*field]);
    let has_added = added.iter().all(is_added);
    for object in [&mut live, &mut wanted] {
        let fields = object.as_object_mut();
        fields.into_iter().for_each(|fields| fields.retain(|field, _| field != "metadata" && field != "status"));
    }
    has_added && compare(&live, &wanted)
}

/// Whether all that is wanted is there.
fn has(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (_, Value::Null) => true,
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| has(live.get(key).unwrap_or(&Value::Null), wanted))
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| has(live, wanted))
        }
        // What is empty is not kept.
        (Value::Null, wanted) => is_empty(wanted),
        (live, wanted) => live == wanted,
    }
}

/// Whether both are the same.
fn equals(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(one), Value::Object(other)) => {
            let both = |key: &String| equals(&live[key], &wanted[key]);
            one.keys().chain(other.keys()).all(both)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equals(one, other))
        }
        (one, other) => one == other || is_empty(one) && is_empty(other),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::is_same;

    fn check(kind: &str, live: &Value, wanted: &Value, expected: bool) {
        let object = |content: &Value| {
            let mut object = content.clone();
            object["kind"] = json!(kind);
            object
        };
        assert_eq!(is_same(&object(live), &object(wanted)), expected, "{kind}: {live}, wanted: {wanted}");
    }

    #[test]
    fn what_is_missing_or_other_is_a_difference() {
        let wanted = json!({ "spec": { "list": [{ "name": "x" }], "empty": {}, "none": null, "gone": [] } });
        for kind in ["Deployment", "Service"] {
            check(kind, &json!({ "spec": { "list": [{ "name": "x" }] } }), &wanted, true);
            check(kind, &json!({ "spec": { "list": [{ "name": "x" }, { "name": "y" }] } }), &wanted, false);
            check(kind, &json!({ "spec": { "list": [{ "name": "z" }] } }), &wanted, false);
            check(kind, &json!({ "spec": {} }), &wanted, false);
        }
    }

    #[test]
    fn what_was_added_since_would_be_removed_but_for_what_a_cluster_sets_itself() {
        let wanted = json!({ "spec": { "a": 1 } });
        check("Deployment", &json!({ "spec": { "a": 1, "b": 2 } }), &wanted, false);
        check("Deployment", &json!({ "spec": { "a": 1, "b": [] }, "status": { "c": 3 } }), &wanted, true);
        check("Service", &json!({ "spec": { "a": 1, "clusterIP": "10.0.0.7" } }), &wanted, true);
        let data = json!({ "data": { "a": "1" } });
        check("ConfigMap", &json!({ "data": { "a": "1", "b": "2" } }), &data, false);
        check("ConfigMap", &json!({ "data": { "a": "1" }, "binaryData": { "b": "Mg==" } }), &data, false);
        let token = json!({ "type": "kubernetes.io/service-account-token" });
        check("Secret", &json!({ "type": token["type"], "data": { "token": "dA==" } }), &token, true);
    }

    #[test]
    fn labels_and_annotations_of_others_stay_and_replicas_where_they_are_retained() {
        let labelled = |labels: Value, replicas: i64| json!({ "metadata": { "labels": labels }, "spec": { "replicas": replicas } });
        let wanted = labelled(json!({ "a": "1" }), 2);
        check("Deployment", &labelled(json!({ "a": "1", "theirs": "x" }), 2), &wanted, true);
        check("Deployment", &labelled(json!({ "a": "2" }), 2), &wanted, false);
        check("Deployment", &labelled(json!({ "a": "1" }), 5), &wanted, false);
        let retained = json!({ "a": "1", "resourcetemplate.karmada.io/retain-replicas": "true" });
        check("Deployment", &labelled(retained.clone(), 5), &labelled(retained, 2), true);
    }
}
