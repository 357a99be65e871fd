//! What the executor gives the program that brings a backup to the machines: a file in the run's private directory.
//! Secrets stay where they are mounted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crds::backup::StagingInputs;
use serde::{Deserialize, Serialize};

/// Name of the file.
pub const FILE: &str = "staging.json";
/// Where etcd keeps its data on every machine, as the role `etcd` has it.
pub const DATA_DIRECTORY: &str = "/var/lib/etcd";

/// What it gets.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StagingSettings {
    /// The backup.
    pub inputs: StagingInputs,
    /// The directory with the run's secrets.
    pub secrets: PathBuf,
    /// By host: how the snapshot gets there.
    pub send: BTreeMap<String, Sending>,
}

/// The way of a snapshot to a machine.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sending {
    /// The command that writes what it reads into the file.
    pub words: Vec<String>,
    /// The secret with the password that sudo may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sudo_password: Option<String>,
}

impl StagingSettings {
    /// Reads the file of a directory.
    pub fn read(directory: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(directory.join(FILE))?)?)
    }
}

/// Where a snapshot is written to; it gets its name once it was checked there, too.
pub fn snapshot_file(data_directory: &str, id: &str) -> String {
    format!("{data_directory}/restore-{id}/snapshot.db.part")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::DATA_DIRECTORY;

    #[test]
    fn etcd_keeps_its_data_where_its_role_says() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("ansible/roles/etcd/vars/main.yml");
        let variables: serde_json::Value = serde_yaml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!(variables["etcd_data_directory"], DATA_DIRECTORY);
    }
}
