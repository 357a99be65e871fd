//! Something that is wrong, as it is reported.

use crds::Reason;

/// What is wrong with the backups of a cluster.
pub(super) struct Problem {
    pub reason: Reason,
    pub message: String,
}
