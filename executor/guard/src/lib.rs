//! The guard stands on each machine between SSH and the shell: it runs every command of a run under the run's fence,
//! the pair (claim epoch of the Host, token of the run). A lower fence than the highest seen is refused; a higher one
//! waits for what the lower left behind, and ends it after a time.
//!
//! This library decides and describes: no input or output, no clock. The program beside it does the work.

pub mod beside;
pub mod comparison;
pub mod exec_race;
pub mod fence;
pub mod grace_period;
pub mod log_audit;
pub mod network;
pub mod pace;
pub mod process_owner;
pub mod record;

pub use fence::Fence;
pub use process_owner::{FENCED_BY, MARK};

/// Where the guard and its state are on a machine. A reset keeps it.
pub const DIRECTORY: &str = "/var/lib/clusterwright/guard";
/// Exit code of a command whose fence is lower than the highest seen; nothing was run.
pub const REFUSED: u8 = 79;
/// Exit code when the guard cannot keep its own promise (state unreadable, disk full); nothing was run.
pub const STATE_FAILED: u8 = 78;
/// Exit code of a command beside an unfinished one of the same run that did not end in time; nothing was run.
pub const BUSY: u8 = 75;
/// Prefix of the guard's own messages on standard error; the reason follows: `refused: ...`, `differs: ...`,
/// `busy: ...` or `failed: ...`.
pub const MARKER: &str = "clusterwright-guard: ";
