//! Server-side apply of a Node's labels and annotations: which keys the operator owns, and that what is applied no more
//! goes.

use crds::names::NODE_FIELD_MANAGER;
use serde_json::{Map, Value, json};

/// Takes away what was applied before and is not now, and writes down what is.
pub(super) fn own(node: &mut Value, applied: &Value) {
    let mut fields = Map::new();
    for map in ["labels", "annotations"] {
        let before = node["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"][format!("f:{map}")].clone();
        let keys = before.as_object().into_iter().flatten().filter_map(|(field, _)| field.strip_prefix("f:"));
        let now = applied["metadata"][map].as_object().cloned().unwrap_or_default();
        for key in keys.filter(|key| !now.contains_key(*key)) {
            node["metadata"][map].as_object_mut().unwrap().remove(key);
        }
        let owned: Map<String, Value> = now.keys().map(|key| (format!("f:{key}"), json!({}))).collect();
        fields.insert(format!("f:{map}"), Value::Object(owned));
    }
    node["metadata"]["managedFields"] = json!([{
        "manager": NODE_FIELD_MANAGER,
        "operation": "Apply",
        "time": "2026-01-01T00:00:00Z",
        "fieldsV1": { "f:metadata": fields },
    }]);
}
