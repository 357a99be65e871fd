//! The result of a backup, as its last line tells it.

use std::io::{self, Write};

use backup::BackupError;
use crds::Reason;
use serde::Serialize;

use super::found::FoundBackup;

const FAILED: u8 = 20;

/// The result.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Answer {
    /// CamelCase; none: it is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// One sentence.
    pub message: String,
    /// The backup that was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<Box<FoundBackup>>,
}

impl Answer {
    /// All is well.
    pub(super) fn done(message: String) -> Self {
        Self { reason: None, message, backup: None }
    }

    /// A failure of this reason.
    pub(super) fn refused(reason: Reason, message: String) -> Self {
        Self { reason: Some(reason.into()), message, backup: None }
    }

    /// A failure that has no name of its own.
    pub(super) fn failed(problem: &str) -> Self {
        Self::refused(Reason::BackupFailed, problem.to_owned())
    }

    /// Prints it, and returns the exit code.
    pub(super) fn say(&self) -> u8 {
        let text = serde_json::to_string(self).unwrap_or_default();
        // Nobody may be there to read it any more.
        let _ = writeln!(io::stdout(), "{text}");
        if self.reason.is_some() { FAILED } else { 0 }
    }
}

impl From<BackupError> for Answer {
    fn from(error: BackupError) -> Self {
        Self { reason: Some(error.reason().to_owned()), message: error.to_string(), backup: None }
    }
}
