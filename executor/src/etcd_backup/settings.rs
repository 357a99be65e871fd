//! What the executor gives the program that makes a backup: a file in the run's private directory. Secrets stay
//! where they are mounted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crds::backup::BackupInputs;
use serde::{Deserialize, Serialize};

use super::spool::Spooling;

/// Name of the file.
pub const FILE: &str = "backup.json";

/// What it gets.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// The backup.
    pub inputs: BackupInputs,
    /// The directory with the run's secrets.
    pub secrets: PathBuf,
    /// URL of each member on its own machine.
    pub url: String,
    /// By host: the words of the command whose standard input and output are its member's client port.
    pub connect: BTreeMap<String, Vec<String>>,
    /// By host: how its snapshot comes from its disk. Empty where members are read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spool: BTreeMap<String, Spooling>,
}

impl Settings {
    /// Reads the file of a directory.
    pub fn read(directory: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(directory.join(FILE))?)?)
    }
}
