//! The verdict: what is done about one machine, or why nothing is.

use crate::moment::after;
use crds::Reason;
use crds::remediation_policy::RemediationAction as Action;
use crds::step::Role;
use jiff::Timestamp;

use super::brake::Brakes;
use super::ladder::Rung;
use super::words::{doing, name, verb};
use super::{Patient, Ward};
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
pub struct Verdict {
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

impl Verdict {
    pub(super) fn none(patient: &Patient, reason: impl Into<String>, message: String) -> Self {
        Self {
            machine: patient.name.clone(),
            action: None,
            begin: None,
            reason: reason.into(),
            what: patient.what().to_owned(),
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
/// Where the machine stands decides, and after that the brakes.
pub(super) fn of(ward: &Ward, brakes: &mut Brakes, patient: &Patient, rung: Rung) -> Option<Verdict> {
    let rule = patient.rule.as_ref()?;
    let remediation = &rule.remediation;
    let (action, retry, tried) = match rung {
        Rung::UnderWay { action, run } => {
            return Some(Verdict {
                action: Some(action),
                ..Verdict::none(
                    patient,
                    doing(action),
                    format!("{} (run {run})", verb(action, patient.role)),
                )
            });
        }
        Rung::Settles { action, until, said } => {
            let clock = clock(until);
            let message = match patient.role {
                Role::Etcd => {
                    format!("{said}; its member has until {clock} to be well, and is looked at then")
                }
                Role::ControlPlane | Role::Worker => {
                    format!("{said}; its node has until {clock} to be Ready")
                }
            };
            return Some(
                Verdict {
                    action: Some(action),
                    ..Verdict::none(patient, Reason::WaitingForNode, message)
                }
                .until(until),
            );
        }
        Rung::Later { at, reason, message } => {
            return Some(
                Verdict::none(
                    patient,
                    reason,
                    format!("{message}; tried again at {}", clock(at)),
                )
                .until(at),
            );
        }
        Rung::Canceled { run } => {
            let message = format!(
                "a person canceled run {run}: nothing more is done until the Machine has the annotation {} = its generation, or is deleted",
                crds::names::annotation::RETRY
            );
            return Some(Verdict::none(patient, Reason::Canceled, message));
        }
        Rung::Exhausted { message } => {
            return Some(Verdict::none(patient, Reason::NothingLeftToTry, message));
        }
        Rung::Next { action, retry, tried } => (action, retry, tried),
    };
    if let Some(stop) = brakes.for_all(ward, patient, rule) {
        return Some(stop);
    }
    let due = after(patient.since()?, patient.patience(remediation));
    // Once something was tried it is known to be sick; what was tried before says nothing of this time.
    let known = patient
        .efforts
        .last()
        .is_some_and(|last| Some(last.made) >= patient.since());
    if !known && due > ward.now {
        let message = format!(
            "since {}; {} follows at {} if that stays so",
            clock(patient.since()?),
            name(action),
            clock(due)
        );
        return Some(Verdict::none(patient, Reason::Waiting, message).until(due));
    }
    if let Some(run) = &patient.busy {
        let message = format!("{} waits for run {run} to end", name(action));
        return Some(Verdict::none(patient, Reason::RunUnderWay, message));
    }
    if let Some(stop) = brakes.for_one(ward, patient, rule, action) {
        return Some(stop);
    }
    brakes.count(patient);
    if action == Action::Replace {
        brakes.take_spare();
    }
    let why = tried.map(|tried| format!(" ({tried})")).unwrap_or_default();
    Some(Verdict {
        machine: patient.name.clone(),
        action: Some(action),
        begin: Some(Begin {
            action,
            retry,
            since: patient.since(),
            reboot_timeout_seconds: rule.remediation.reboot_timeout_seconds,
        }),
        reason: doing(action).into(),
        what: patient.what().to_owned(),
        message: format!("{}{why}", verb(action, patient.role)),
        until: None,
    })
}
