//! Why an Addon, or one cluster of it, cannot be as it is wanted.

use crds::Reason;

/// What is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// CamelCase.
    pub reason: Reason,
    /// The field or the place, what is wrong with it, and what to do.
    pub message: String,
}
