//! The lines of a machine's log: who worked on it, from when to when, under which fence.

use serde::{Deserialize, Serialize};

use crate::Fence;
use crate::process_owner::Worker;

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// A higher fence was taken.
    Raised,
    /// A fence waits for `processes` of lower ones (or, at its end, of its own).
    Waits,
    /// These `processes` were sent `signal`. Written before it is sent.
    Ended,
    /// No process of lower fences (at a run's begin), or of this fence (at its end), is left: `of` says which.
    Quiet,
    /// A command begins.
    Begin,
    /// A command has ended, with `rc`.
    End,
    /// A command, or a run, was refused: `reason`.
    Refused,
    /// Earlier lines are in `log.1`, or gone; `highest` and `open` are what must be known of them.
    Rotated,
}

/// The fences that a `quiet` line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Of {
    /// All lower fences.
    Lower,
    /// This fence.
    This,
}

/// A command that has begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    pub pid: u32,
    #[serde(flatten)]
    pub fence: Fence,
    #[serde(default)]
    pub boot: String,
    #[serde(default)]
    pub step: String,
    /// Somebody has sent it a signal.
    #[serde(default)]
    pub ended: bool,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub event: Event,
    /// RFC 3339, with milliseconds.
    pub at: String,
    /// Nanoseconds of the machine's monotonic clock.
    pub monotonic: u64,
    /// Which start of the machine it was; changes with each.
    #[serde(default)]
    pub boot: String,
    #[serde(default)]
    pub cluster: String,
    #[serde(default)]
    pub host: String,
    #[serde(default)]
    pub run: String,
    /// Empty where no step is meant.
    #[serde(default)]
    pub step: String,
    #[serde(default)]
    pub attempt: i64,
    #[serde(flatten)]
    pub fence: Fence,
    /// The guard that wrote the line; a command's `begin` and `end` have the same.
    pub pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rc: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Of>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<Worker>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest: Option<Fence>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<Open>,
}
