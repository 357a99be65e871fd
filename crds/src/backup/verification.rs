//! What a Pod that verifies a backup is given, and what it says of it: the JSON of its termination message.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::etcd_backup::VerifyMethod;

/// What is asked of a Pod that verifies a stored backup. What is said of the backup is what its EtcdBackup has kept: a
/// manifest that says otherwise was changed.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerificationInputs {
    /// What is done.
    pub how: VerifyMethod,
    /// The backup's directory in the storage, below the prefix.
    pub location: String,
    /// Name of the EtcdBackup.
    pub backup: String,
    /// Name of the cluster.
    pub cluster: String,
    /// Every write up to this revision is in it.
    pub revision: i64,
    /// Keys at that revision.
    pub keys: i64,
    /// Bytes of the snapshot, decrypted.
    pub size: u64,
    /// SHA-256 of the snapshot, decrypted, hexadecimal.
    pub sha256: String,
    /// Where etcd's programs come from; only with `Restore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs: Option<ProgramsInputs>,
}

/// Where etcd's programs come from, as the machines have them: the cluster's artifact bundle, or upstream.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProgramsInputs {
    /// URL of the bundle, without a slash at its end. Empty: there is none, and `archives` says where they are.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// URL of the archive by architecture, without a bundle. Each has its digest in `digests`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub archives: BTreeMap<String, String>,
    /// SHA-256 of its `index.json`. None: the index is believed.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "indexSHA256")]
    pub index_sha256: Option<String>,
    /// PEM of the authorities that the server's certificate may come from. None: those of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorities: Option<String>,
    /// Version of etcd: that of the member that the backup was read from.
    pub version: String,
    /// SHA-256 of the archive by architecture, as it is frozen for the cluster; empty: the index of the bundle is
    /// believed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub digests: BTreeMap<String, String>,
}

/// What came of a verification.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct VerificationReport {
    /// How it ended. None: it could not be made, and says nothing of the backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_good: Option<bool>,
    /// In one sentence: what was seen; or what differs, where, what was wanted and what was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::VerificationReport;

    #[test]
    fn a_report_that_says_nothing_says_nothing_of_the_backup() {
        let read = |text: &str| serde_json::from_str::<VerificationReport>(text).unwrap();
        assert_eq!(read("{}").is_good, None);
        assert_eq!(read(r#"{"isGood": false, "message": "x", "new": 1}"#).is_good, Some(false));
    }
}
