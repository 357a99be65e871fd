//! The guard stands on each machine between SSH and the shell: it runs every command of a run under the run's fence,
//! the pair (claim epoch of the Host, token of the run). A lower fence than the highest seen is refused; a higher one
//! waits for what the lower left behind, and ends it after a time.
//!
//! This library decides and describes: no input or output, no clock. The program beside it does the work.

pub mod at_work;
pub mod beside;
pub mod fence;
pub mod network;
pub mod oracle;
pub mod pace;
pub mod patience;
pub mod record;
pub mod unclear;

pub use fence::Fence;

/// Where the guard and its state are on a machine. A reset keeps it.
pub const DIRECTORY: &str = "/var/lib/clusterwright/guard";
/// Exit code of a command whose fence is lower than the highest seen; nothing was run.
pub const REFUSED: u8 = 79;
/// Exit code when the guard cannot keep its own promise (state unreadable, disk full); nothing was run.
pub const STATE_FAILED: u8 = 78;
/// Exit code of a command beside an unfinished one of the same run that did not end in time; nothing was run.
pub const BUSY: u8 = 75;
/// What the guard's own words on standard error begin with; the reason follows: `refused: ...`, `differs: ...`,
/// `busy: ...` or `failed: ...`.
pub const MARKER: &str = "clusterwright-guard: ";
/// The variable in the environment of each command of a run: its fence. Whatever a command starts inherits it.
pub const MARK: &str = "CLUSTERWRIGHT_FENCE";
/// The variable beside it: the directory of the guard that put the mark there.
pub const FENCED_BY: &str = "CLUSTERWRIGHT_FENCED_BY";
