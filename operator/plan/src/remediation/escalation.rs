//! The escalation: which action comes next for one sick machine, from what was tried. Each is waited for before the
//! next; one that was interrupted is tried again; a machine that SSH does not reach is only replaced.

use crds::remediation_policy::{Remediation, RemediationAction as Action};
use jiff::{SignedDuration, Timestamp};

use super::MachineHealth;
use super::effort::{Effort, EffortResult};
use crate::attempts::{Failure, backoff};
use crate::moment::after;

/// A machine that falls sick again within this time of an effort goes on with the next action.
const MEMORY: SignedDuration = SignedDuration::from_hours(1);
/// How often an action that is interrupted is tried.
const MOST_INTERRUPTIONS: usize = 3;

/// Where a machine stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// This is next; with what was tried before, if anything was.
    Next { action: Action, retry: Option<String>, tried: Option<String> },
    /// Nothing begins now.
    Waits(Waits),
}

/// Why nothing begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// An action is under way.
    UnderWay { action: Action, run: String },
    /// An action was carried out, and the node has time to become Ready.
    Settles { action: Action, until: Timestamp, said: String },
    /// It is tried again later.
    Later { at: Timestamp, reason: String, message: String },
    /// A person stopped it.
    Canceled { run: String },
    /// Everything was tried.
    Exhausted { message: String },
}

impl Stage {
    /// Whether something is being done about the machine.
    pub fn is_under_way(&self) -> bool {
        matches!(self, Stage::Waits(Waits::UnderWay { .. } | Waits::Settles { .. }))
    }
}

/// What works on the machine now.
pub(super) fn under_way(health: &MachineHealth) -> Option<Stage> {
    let effort = health.efforts.last()?;
    (effort.result == EffortResult::UnderWay)
        .then(|| Stage::Waits(Waits::UnderWay { action: effort.action, run: effort.run.clone() }))
}

/// A machine on which nothing of the cluster works yet: it is replaced, or nothing is done.
pub(super) fn for_one_that_never_started(remediation: &Remediation) -> Stage {
    if remediation.actions.contains(&Action::Replace) {
        return Stage::Next { action: Action::Replace, retry: None, tried: None };
    }
    Stage::Waits(Waits::Exhausted {
        message: "Replace is not among the actions, and nothing else helps a machine that never started".into(),
    })
}

/// What comes next for a machine that has been sick since then.
pub(super) fn next(health: &MachineHealth, remediation: &Remediation, since: Timestamp, now: Timestamp) -> Stage {
    let efforts = of_this_spell(health, since);
    let wait = SignedDuration::from_secs(i64::from(remediation.wait_seconds));
    let mut silent = false;
    for action in remediation.actions.iter().copied() {
        if silent && action != Action::Replace {
            continue;
        }
        let of_action: Vec<&Effort> = efforts.iter().copied().filter(|effort| effort.action == action).collect();
        let Some(last) = of_action.last() else {
            return begin(health, action, &efforts, wait, now);
        };
        if let Some(stage) = not_over(health, &of_action, last, now) {
            return stage;
        }
        if let EffortResult::Failed(failure) = &last.result {
            silent |= !failure.interrupted && failure.is_silence();
        }
    }
    exhausted(health, &efforts, remediation, silent, now)
}

/// Where an action stands that is not over: what was interrupted, and what did not begin, is tried again.
fn not_over(health: &MachineHealth, of_action: &[&Effort], last: &Effort, now: Timestamp) -> Option<Stage> {
    let run = last.run.clone();
    let action = last.action;
    let is_interrupted =
        |effort: &Effort| matches!(&effort.result, EffortResult::Failed(failure) if failure.interrupted);
    let (failures, failure) = match &last.result {
        EffortResult::UnderWay => return Some(Stage::Waits(Waits::UnderWay { action, run })),
        EffortResult::Canceled => return Some(Stage::Waits(Waits::Canceled { run })),
        EffortResult::Held => return Some(again(health, last)),
        EffortResult::NotTried(failure) => {
            let not_tried = |effort: &&&Effort| matches!(effort.result, EffortResult::NotTried(_));
            (of_action.iter().rev().take_while(not_tried).count(), failure)
        }
        EffortResult::Failed(failure) if is_interrupted(last) => {
            let interrupted = of_action.iter().filter(|effort| is_interrupted(effort)).count();
            if interrupted >= MOST_INTERRUPTIONS {
                return None;
            }
            (interrupted, failure)
        }
        EffortResult::Failed(_) | EffortResult::Done => return None,
    };
    let at = after(last.ended, backoff(failures));
    Some(match at > now {
        true => later(at, action, last, failure),
        false => again(health, last),
    })
}

fn begin(health: &MachineHealth, action: Action, efforts: &[&Effort], wait: SignedDuration, now: Timestamp) -> Stage {
    let Some(last) = efforts.iter().max_by_key(|effort| effort.ended) else {
        return Stage::Next { action, retry: health.retry.clone(), tried: None };
    };
    if let Some(settles) = settles(health, last, wait, now) {
        return settles;
    }
    Stage::Next { action, retry: health.retry.clone(), tried: Some(outcome(last)) }
}

/// The machine has time to become well after whatever was tried, until it is looked at again.
fn settles(health: &MachineHealth, last: &Effort, wait: SignedDuration, now: Timestamp) -> Option<Stage> {
    let until = after(last.ended, wait);
    let unseen = health.seen_at.is_some_and(|at| at < until);
    (until > now || unseen).then(|| {
        Stage::Waits(Waits::Settles {
            action: last.action,
            until,
            said: match last.result {
                EffortResult::Done => format!("run {} {}", last.run, super::words::done(last.action, health.role)),
                _ => outcome(last),
            },
        })
    })
}

fn again(health: &MachineHealth, last: &Effort) -> Stage {
    Stage::Next { action: last.action, retry: health.retry.clone(), tried: Some(outcome(last)) }
}

fn later(at: Timestamp, action: Action, last: &Effort, failure: &Failure) -> Stage {
    Stage::Waits(Waits::Later {
        at,
        reason: failure.reason.clone(),
        message: format!("{} of run {}: {}", super::name(action), last.run, failure.message),
    })
}

fn exhausted(
    health: &MachineHealth,
    efforts: &[&Effort],
    remediation: &Remediation,
    silent: bool,
    now: Timestamp,
) -> Stage {
    let wait = SignedDuration::from_secs(i64::from(remediation.wait_seconds));
    let last = efforts.iter().max_by_key(|effort| effort.ended);
    if let Some(settles) = last.and_then(|last| settles(health, last, wait, now)) {
        return settles;
    }
    let actions: Vec<&str> = remediation.actions.iter().map(|action| super::name(*action)).collect();
    let message = match silent {
        true => format!(
            "SSH does not answer either, and Replace is not among the actions ({}): look at the machine, or delete the Machine",
            actions.join(", ")
        ),
        false => format!("{} did not help: look at the machine, or delete the Machine", actions.join(" and ")),
    };
    Stage::Waits(Waits::Exhausted { message })
}

/// `RestartServices did not help`, for the sentence on what comes next.
fn outcome(effort: &Effort) -> String {
    let action = super::name(effort.action);
    let run = &effort.run;
    match &effort.result {
        EffortResult::UnderWay => format!("{action} is under way, run {run}"),
        EffortResult::Done => format!("{action} did not help, run {run}"),
        EffortResult::Failed(failure) | EffortResult::NotTried(failure) => {
            format!("{action} failed, run {run}: {}", failure.message)
        }
        EffortResult::Canceled => format!("{action} was canceled, run {run}"),
        EffortResult::Held => format!("{action} was held at a pause, run {run}"),
    }
}

/// The efforts of this spell of sickness: up to now without a longer pause between two of them, and since the last
/// retry that a person asked for.
fn of_this_spell(health: &MachineHealth, since: Timestamp) -> Vec<&Effort> {
    let efforts = &health.efforts;
    let mut from = since;
    let mut first = efforts.len();
    for (index, effort) in efforts.iter().enumerate().rev() {
        let known = effort.result == EffortResult::UnderWay || from.duration_since(effort.ended) <= MEMORY;
        if !known {
            break;
        }
        first = index;
        from = from.min(effort.made);
    }
    let asked = health.retry.as_ref().map(|retry| {
        let answered = efforts.iter().position(|effort| effort.retry.as_ref() == Some(retry));
        // One that works is not forgotten by asking again.
        answered.unwrap_or_else(|| {
            let works = efforts.iter().position(|effort| effort.result == EffortResult::UnderWay);
            works.unwrap_or(efforts.len())
        })
    });
    efforts.iter().skip(first.max(asked.unwrap_or(0))).collect()
}
