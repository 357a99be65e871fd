//! What is done about one machine now, by where it stands and within the limits.

use crds::Reason;
use crds::names::annotation;
use crds::remediation_policy::RemediationAction as Action;
use crds::step::Role;

use super::decision::{Begin, Decision};
use super::escalation::{Stage, Waits};
use super::limits::Limits;
use super::words::{doing, name, verb};
use super::{MachineHealth, RemediationInput};
use crate::moment::{after, clock};

pub(super) fn waiting(health: &MachineHealth, waits: Waits) -> Decision {
    match waits {
        Waits::UnderWay { action, run } => {
            let message = format!("{} (run {run})", verb(action, health.role));
            Decision { action: Some(action), ..Decision::none(health, doing(action), message) }
        }
        Waits::Settles { action, until, said } => {
            let clock = clock(until);
            let message = match health.role {
                Role::Etcd => {
                    format!("{said}; its member has until {clock} to be well, and is looked at then")
                }
                Role::ControlPlane | Role::Worker => {
                    format!("{said}; its node has until {clock} to be Ready")
                }
            };
            let decision = Decision { action: Some(action), ..Decision::none(health, Reason::WaitingForNode, message) };
            decision.until(until)
        }
        Waits::Later { at, reason, message } => {
            let message = format!("{message}; tried again at {}", clock(at));
            Decision::none(health, reason, message).until(at)
        }
        Waits::Canceled { run } => {
            let message = format!(
                "a person canceled run {run}: nothing more is done until the Machine has the annotation {} = its generation, or is deleted",
                annotation::RETRY
            );
            Decision::none(health, Reason::Canceled, message)
        }
        Waits::Exhausted { message } => Decision::none(health, Reason::NothingLeftToTry, message),
    }
}

/// Where the machine stands decides, and after that the limits.
pub(super) fn decide(
    input: &RemediationInput,
    limits: &mut Limits,
    health: &MachineHealth,
    stage: Stage,
) -> Option<Decision> {
    let rule = health.rule.as_ref()?;
    let remediation = &rule.remediation;
    let (action, retry, tried) = match stage {
        Stage::Next { action, retry, tried } => (action, retry, tried),
        Stage::Waits(waits) => return Some(waiting(health, waits)),
    };
    if let Some(stop) = limits.for_all(input, health, rule) {
        return Some(stop);
    }
    let due = after(health.since()?, health.patience(remediation));
    // Once something was tried it is known to be sick; what was tried before says nothing of this time.
    let known = health.efforts.last().is_some_and(|last| Some(last.made) >= health.since());
    if !known && due > input.now {
        let message =
            format!("since {}; {} follows at {} if that stays so", clock(health.since()?), name(action), clock(due));
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
