//! The decision: what is done about one machine, or why nothing is.

use crds::remediation_policy::RemediationAction as Action;
use jiff::Timestamp;

use super::MachineHealth;

/// What begins now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begin {
    /// What.
    pub action: Action,
    /// The retry that it answers.
    pub retry: Option<String>,
    /// Since when the machine is sick: attempts since then are at the same.
    pub since: Option<Timestamp>,
    /// How long a reboot may take.
    pub reboot_timeout_seconds: i32,
}

/// What is done about one machine, or why nothing is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Name of the Machine.
    pub machine: String,
    /// The action under way, or beginning.
    pub action: Option<Action>,
    /// What begins now.
    pub begin: Option<Begin>,
    /// CamelCase.
    pub reason: String,
    /// What is wrong with it: `its kubelet is silent`.
    pub what: String,
    /// What is done, or why nothing is, without the machine's name.
    pub message: String,
    /// When to look again.
    pub until: Option<Timestamp>,
}

impl Decision {
    pub(super) fn none(health: &MachineHealth, reason: impl Into<String>, message: String) -> Self {
        Self {
            machine: health.name.clone(),
            action: None,
            begin: None,
            reason: reason.into(),
            what: health.what().to_owned(),
            message,
            until: None,
        }
    }

    /// What is wrong with it, and what is done or why nothing is.
    pub fn sentence(&self) -> String {
        match self.what.as_str() {
            "" => self.message.clone(),
            what => format!("{what}: {}", self.message),
        }
    }

    pub(super) fn until(self, at: Timestamp) -> Self {
        Self { until: Some(at), ..self }
    }
}
