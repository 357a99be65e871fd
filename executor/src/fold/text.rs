//! The length of texts in a status, and names of tasks.

use serde_json::Value;

use crate::sanitize::clean;

pub(super) const TASK_LIMIT: usize = 256;
pub(super) const MESSAGE_LIMIT: usize = 1024;

/// A task's name as a person wrote it: Ansible puts `collection.role : ` before it.
pub(super) fn task_name(name: &str) -> String {
    let written = name.split_once(" : ").filter(|(role, _)| !role.contains(' ')).map(|(_, written)| written);
    clean(written.unwrap_or(name), TASK_LIMIT)
}

/// A text of a report, cleaned and cut; none: it has none, or an empty one.
pub(super) fn field(value: &Value, key: &str, limit: usize) -> Option<String> {
    let text = value.get(key).and_then(Value::as_str).unwrap_or_default();
    Some(clean(text, limit)).filter(|text| !text.is_empty())
}
