//! Why custom playbooks are refused.

use crds::Reason;

/// Why nothing can be played from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// CamelCase.
    pub reason: Reason,
    /// Field, value, what is allowed, what to do.
    pub message: String,
}

pub(super) fn refuse<T>(reason: Reason, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { reason, message: message.into() })
}
