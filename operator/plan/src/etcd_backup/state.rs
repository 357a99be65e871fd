//! How a backup stands.

use crds::etcd_backup::BackupContent;
use crds::{PlaybookRun, Reason};
use jiff::Timestamp;

/// How the backup stands.
pub(super) enum State<'a> {
    /// It cannot begin yet.
    Waits(Reason, String),
    /// The next attempt begins now.
    Begins(Box<PlaybookRun>),
    /// A run is at it.
    Runs(&'a PlaybookRun),
    /// The next attempt begins then.
    Retries(&'a PlaybookRun, Timestamp),
    /// It is there.
    Taken(&'a PlaybookRun, &'a BackupContent),
    /// Nothing more is tried.
    GivenUp(String, String),
}
