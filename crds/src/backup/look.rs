//! What an executor that looked at a storage says in its termination message.

use serde::{Deserialize, Serialize};

use crate::backup_storage::NewestBackup;

/// What was found.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct StorageLook {
    /// An object could be written, read, listed and deleted.
    pub reachable: bool,
    /// Why not: CamelCase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why not, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Backups in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backups: Option<i64>,
    /// Bytes of their objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Bytes that are free, where that can be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<i64>,
    /// The backup that was completed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<NewestBackup>,
}
