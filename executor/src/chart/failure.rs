//! Why nothing came of a chart.

use crds::Reason;

/// Why nothing came of it.
#[derive(Debug)]
pub(super) struct Failure {
    pub reason: Reason,
    pub message: String,
}

impl Failure {
    /// With that reason.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}
