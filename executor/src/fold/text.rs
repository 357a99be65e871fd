//! The length of texts in a status, and names of tasks.

use crate::sanitize::clean;

pub(super) const TASK_LIMIT: usize = 256;
pub(super) const MESSAGE_LIMIT: usize = 1024;

/// A task's name as a person wrote it: Ansible puts `collection.role : ` before it.
pub(super) fn task_name(name: &str) -> String {
    let written = name.split_once(" : ").filter(|(role, _)| !role.contains(' ')).map(|(_, written)| written);
    clean(written.unwrap_or(name), TASK_LIMIT)
}
