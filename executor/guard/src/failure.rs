//! Why the guard ran nothing, with the message and the exit code of each reason.

use std::io;
use std::path::Path;

use guard::{BUSY, MARKER, REFUSED, STATE_FAILED};
use thiserror::Error;

/// Wrong arguments, as sysexits.h has it.
const USAGE: u8 = 64;
/// What is needed does not answer, as sysexits.h has it.
const UNAVAILABLE: u8 = 69;

/// Why nothing was run. Its text is the guard's word on standard error.
#[derive(Debug, Error)]
pub enum Failure {
    /// A newer run has the machine.
    #[error("{MARKER}refused: {0}")]
    Refused(String),
    /// An earlier command of the same run is still running.
    #[error("{MARKER}busy: {0}")]
    Busy(String),
    /// The machine is not as the run expects it.
    #[error("{MARKER}differs: {0}")]
    Differs(String),
    /// The guard cannot keep its promise.
    #[error("{MARKER}failed: {0}")]
    State(String),
    /// The port of the machine does not answer, or no longer. No word of the guard about itself: without its mark.
    #[error("guard: {0}")]
    Connect(String),
    /// Called wrongly.
    #[error("{MARKER}failed: {0}")]
    Usage(String),
}

impl Failure {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Refused(_) | Self::Differs(_) => REFUSED,
            Self::Busy(_) => BUSY,
            Self::State(_) => STATE_FAILED,
            Self::Connect(_) => UNAVAILABLE,
            Self::Usage(_) => USAGE,
        }
    }

    /// For `map_err`: a failure that names the action, the file, the error of the system, and what a person can do.
    pub fn on(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| {
            let advice = match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "; make room on this file system (see df) and let the run try again"
                }
                io::ErrorKind::ReadOnlyFilesystem => {
                    "; the disk may be broken (see dmesg): make it writable and let the run try again"
                }
                io::ErrorKind::PermissionDenied => "; the guard's directory belongs to root",
                _ => "",
            };
            Self::State(format!("failed to {action} {}: {error}{advice}", path.display()))
        }
    }

    /// A failure to write JSON, which cannot happen to our own types.
    pub fn json(error: serde_json::Error) -> Self {
        Self::State(format!("failed to write JSON: {error}"))
    }
}
