//! The decision: what is done about one machine, or why nothing is.

use crate::moment::after;
use crds::Reason;
use crds::remediation_policy::RemediationAction as Action;
use crds::step::Role;
use jiff::Timestamp;

use super::escalation::Stage;
use super::limits::Limits;
use super::words::{doing, name, verb};
use super::{MachineHealth, RemediationInput};
use crate::moment::clock;

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
        Self {
            until: Some(at),
            ..self
        }
    }
}
/// Where the machine stands decides, and after that the limits.
pub(super) fn of(
    input: &RemediationInput,
    limits: &mut Limits,
    health: &MachineHealth,
    stage: Stage,
) -> Option<Decision> {
    let rule = health.rule.as_ref()?;
    let remediation = &rule.remediation;
    let (action, retry, tried) = match stage {
        Stage::UnderWay { action, run } => {
            return Some(Decision {
                action: Some(action),
                ..Decision::none(
                    health,
                    doing(action),
                    format!("{} (run {run})", verb(action, health.role)),
                )
            });
        }
        Stage::Settles { action, until, said } => {
            let clock = clock(until);
            let message = match health.role {
                Role::Etcd => {
                    format!("{said}; its member has until {clock} to be well, and is looked at then")
                }
                Role::ControlPlane | Role::Worker => {
                    format!("{said}; its node has until {clock} to be Ready")
                }
            };
            return Some(
                Decision {
                    action: Some(action),
                    ..Decision::none(health, Reason::WaitingForNode, message)
                }
                .until(until),
            );
        }
        Stage::Later { at, reason, message } => {
            return Some(
                Decision::none(health, reason, format!("{message}; tried again at {}", clock(at))).until(at),
            );
        }
        Stage::Canceled { run } => {
            let message = format!(
                "a person canceled run {run}: nothing more is done until the Machine has the annotation {} = its generation, or is deleted",
                crds::names::annotation::RETRY
            );
            return Some(Decision::none(health, Reason::Canceled, message));
        }
        Stage::Exhausted { message } => {
            return Some(Decision::none(health, Reason::NothingLeftToTry, message));
        }
        Stage::Next { action, retry, tried } => (action, retry, tried),
    };
    if let Some(stop) = limits.for_all(input, health, rule) {
        return Some(stop);
    }
    let due = after(health.since()?, health.patience(remediation));
    // Once something was tried it is known to be sick; what was tried before says nothing of this time.
    let known = health
        .efforts
        .last()
        .is_some_and(|last| Some(last.made) >= health.since());
    if !known && due > input.now {
        let message = format!(
            "since {}; {} follows at {} if that stays so",
            clock(health.since()?),
            name(action),
            clock(due)
        );
        return Some(Decision::none(health, Reason::Waiting, message).until(due));
    }
    if let Some(run) = &health.busy {
        let message = format!("{} waits for run {run} to end", name(action));
        return Some(Decision::none(health, Reason::RunUnderWay, message));
    }
    if let Some(stop) = limits.for_one(input, health, rule, action) {
        return Some(stop);
    }
    limits.count(health);
    if action == Action::Replace {
        limits.take_spare();
    }
    let why = tried.map(|tried| format!(" ({tried})")).unwrap_or_default();
    Some(Decision {
        machine: health.name.clone(),
        action: Some(action),
        begin: Some(Begin {
            action,
            retry,
            since: health.since(),
            reboot_timeout_seconds: rule.remediation.reboot_timeout_seconds,
        }),
        reason: doing(action).into(),
        what: health.what().to_owned(),
        message: format!("{}{why}", verb(action, health.role)),
        until: None,
    })
}
