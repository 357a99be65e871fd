//! Digests of settings.

use serde::Serialize;

use crate::naming;

/// A short digest of a setting.
pub fn digest(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    naming::short_hash(&[&text], 16)
}
