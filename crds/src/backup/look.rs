//! What a Pod that looked at a storage says of it: the JSON of its termination message.

use serde::{Deserialize, Serialize};

use crate::backup_storage::NewestBackup;

/// What was found. Either `backups` and what follows, or `reason` and `message`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageLook {
    /// An object was written, read back, listed and deleted.
    pub reachable: bool,
    /// Why not, in CamelCase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why not, in one sentence that says what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Backups that are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backups: Option<u64>,
    /// Bytes of their objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Bytes that are free; none for a bucket, of which nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free: Option<u64>,
    /// The one that was completed last, if one has a manifest that can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<NewestBackup>,
}

#[cfg(test)]
mod tests {
    use super::StorageLook;

    #[test]
    fn what_a_newer_executor_says_beside_it_is_passed_over() {
        let read = |text: &str| serde_json::from_str::<StorageLook>(text).unwrap();
        let text = r#"{"reachable": true, "backups": 2, "size": 9, "free": null, "new": 1,
            "newest": {"location": "a/b", "completedAt": "2026-11-23T10:00:00Z", "new": 1}}"#;
        let look = read(text);
        assert_eq!((look.reachable, look.backups, look.free), (true, Some(2), None));
        assert_eq!(look.newest.unwrap().location, "a/b");
        assert!(!read("{}").reachable);
    }
}
