//! What the planner of restores answers.

use crds::{EtcdBackup, PlaybookRun};

use crate::key_transfer::KeyTransfer;

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Hold the object until what it has on the machines is removed; of a plane, until the plane has what was handed
    /// over.
    AddFinalizer,
    /// Make what fetches the keys of the backup of a plane.
    FetchKeys(Box<KeyTransfer>),
    /// Remove that, what it may do, and what it has written.
    DropKeyTransfer,
    /// Create this backup of what is there, unless it is there already.
    BackUp(Box<EtcdBackup>),
    /// Create this run, unless it is there already.
    Begin(Box<PlaybookRun>),
    /// Let the object go.
    RemoveFinalizer,
}
