//! How what a set of machines says goes over what the cluster says.

use serde_json::Value;

/// Field by field; a map, key by key.
pub(super) fn over(base: &mut Value, more: Value) {
    match (base, more) {
        (Value::Object(base), Value::Object(more)) => {
            for (key, value) in more {
                over(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, more) => *base = more,
    }
}

/// A value for what has anything to say, and none for `{}`.
pub(super) fn unless_empty(value: Value) -> Option<Value> {
    let is_empty = value.as_object().is_none_or(serde_json::Map::is_empty);
    (!is_empty).then_some(value)
}
