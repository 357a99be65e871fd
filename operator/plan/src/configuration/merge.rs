//! How what a set of machines says goes over what the cluster says.

use serde_json::{Map, Value};

/// Field by field; a map, key by key.
pub(super) fn over(base: &mut Value, more: Value) {
    let Value::Object(more) = more else {
        *base = more;
        return;
    };
    if !base.is_object() {
        *base = Value::Object(Map::new());
    }
    if let Value::Object(base) = base {
        more.into_iter().for_each(|(key, value)| over(base.entry(key).or_insert(Value::Null), value));
    }
}

/// A value for what has anything to say, and none for `{}`.
pub(super) fn unless_empty(value: Value) -> Option<Value> {
    let is_empty = value.as_object().is_none_or(Map::is_empty);
    (!is_empty).then_some(value)
}
