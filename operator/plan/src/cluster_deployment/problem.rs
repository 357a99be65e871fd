//! A wish that cannot be met, or not yet.

use crds::Reason;

/// Why nothing is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// CamelCase.
    pub reason: Reason,
    /// What is wrong, where, and what to do.
    pub message: String,
    /// It may end by a change of another object that is not followed.
    pub ends_unseen: bool,
}
