//! Server-side apply: who has applied an object; and of a Node's labels, annotations and cordon, which fields a manager
//! owns, and that what it applies no more goes.

use crds::names::KARMADA_FIELD_MANAGER;
use serde_json::{Map, Value, json};

/// Writes down that this manager has applied the object, of those who read it back. Which fields it owns, and what it
/// applies no more, is not kept of such.
pub(super) fn sign(object: &mut Value, applied: &Value, manager: &str) {
    if manager != KARMADA_FIELD_MANAGER || applied["kind"].is_null() {
        return;
    }
    let entry = json!({ "manager": manager, "operation": "Apply", "fieldsV1": {} });
    object["metadata"]["managedFields"] = json!([entry]);
}

/// Takes away what the manager applied before and does not now, and writes down what it does.
pub(super) fn own(node: &mut Value, applied: &Value, manager: &str) {
    let mut entries = node["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let known = entries.iter().position(|entry| entry["manager"] == manager && entry["operation"] == "Apply");
    let before = known.map(|index| entries.remove(index)["fieldsV1"].take()).unwrap_or_default();
    let mut metadata = Map::new();
    for map in ["labels", "annotations"] {
        let keys = before["f:metadata"][format!("f:{map}")].as_object().into_iter().flatten();
        let now = applied["metadata"][map].as_object().cloned().unwrap_or_default();
        for key in keys.filter_map(|(field, _)| field.strip_prefix("f:")).filter(|key| !now.contains_key(*key)) {
            node["metadata"][map].as_object_mut().unwrap().remove(key);
        }
        let owned: Map<String, Value> = now.keys().map(|key| (format!("f:{key}"), json!({}))).collect();
        metadata.insert(format!("f:{map}"), Value::Object(owned));
    }
    let cordons = |fields: &Value| fields["f:spec"]["f:unschedulable"].is_object();
    let mut fields = json!({ "f:metadata": metadata });
    if applied["spec"]["unschedulable"].is_boolean() {
        fields["f:spec"] = json!({ "f:unschedulable": {} });
    } else if cordons(&before) && !entries.iter().any(|entry| cordons(&entry["fieldsV1"])) {
        node["spec"].as_object_mut().unwrap().remove("unschedulable");
    }
    let entry = json!({ "manager": manager, "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields });
    entries.push(entry);
    node["metadata"]["managedFields"] = Value::Array(entries);
}
