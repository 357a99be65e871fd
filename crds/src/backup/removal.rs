//! What a Pod that removed a backup from its storage says of it: the JSON of its termination message.

use serde::{Deserialize, Serialize};

/// What came of it: `removed`, or `reason` and `message`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupRemoval {
    /// Nothing of the backup is in the storage any more.
    pub removed: bool,
    /// Why not, in CamelCase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why not, in one sentence that says what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
