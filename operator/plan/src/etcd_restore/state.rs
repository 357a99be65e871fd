//! How a restore stands.

use crds::{EtcdBackup, PlaybookRun, Reason};
use jiff::Timestamp;

/// What the runs of a restore do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// A backup is laid ready.
    Staging,
    /// The data is replaced.
    Restoring,
    /// What runs on the machines is restarted over data that was restored.
    Restarting,
    /// The data of before comes back.
    Undoing,
}

/// How a restore stands.
pub(super) enum State<'a> {
    /// It cannot go on yet.
    Waits(Reason, String),
    /// It is approved, and what is there is backed up first: the EtcdBackup that is made, unless it is there, and what
    /// it does.
    BacksUp(Option<Box<EtcdBackup>>, String),
    /// A run begins now.
    Begins(Box<PlaybookRun>, Doing),
    /// A run is at it.
    Runs(&'a PlaybookRun, Doing),
    /// The next attempt begins then.
    Retries(&'a PlaybookRun, Timestamp, Doing),
    /// All is ready; the message says what is lost, and what to type.
    AwaitsApproval(String),
    /// The run ended before the control plane was released, or is gone; the message says what to type.
    Interrupted(Option<&'a PlaybookRun>, String),
    /// The cluster has the backup's data; what could not be done afterwards, if anything.
    Restored(Option<&'a PlaybookRun>, Option<String>),
    /// The cluster has the data of before.
    Undone(&'a PlaybookRun),
    /// Nothing of the cluster was touched, and nothing will be.
    GivenUp(String, String),
}
