//! Why a run has no model.

use crds::Reason;

use crate::hooks::Refusal;

/// Why a run has no model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputsProblem {
    /// CamelCase.
    pub reason: Reason,
    /// What is wrong and what to do.
    pub message: String,
    /// False: it may be cured without another run, by making or changing other objects.
    pub permanent: bool,
    /// Of a permanent one: a new run may do.
    pub retriable: bool,
}

impl InputsProblem {
    pub(super) fn refused(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), permanent: true, retriable: false }
    }

    /// What an earlier pass froze is not what is to be frozen now: nothing is started from it.
    pub fn changed(config_map: &str) -> Self {
        let message = format!(
            "the inputs in ConfigMap {config_map} are not those that this run is to work from (they, or what they are made of, changed before it began): a new run freezes them anew"
        );
        Self { retriable: true, ..Self::refused(Reason::InputsChanged, message) }
    }

    /// A problem that ends by itself once what is missing is there.
    pub fn waits(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), permanent: false, retriable: true }
    }
}

impl From<Refusal> for InputsProblem {
    fn from(refusal: Refusal) -> Self {
        // A person changes the ConfigMap, or the hooks; then another run may do.
        Self { retriable: true, ..Self::refused(refusal.reason, refusal.message) }
    }
}
