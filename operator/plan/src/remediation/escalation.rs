//! The escalation: which action comes next for one sick machine, from what was tried. Each is waited for before the
//! next; one that was interrupted is tried again; a machine that SSH does not reach is only replaced.

use crds::remediation_policy::{Remediation, RemediationAction as Action};
use jiff::{SignedDuration, Timestamp};

use super::MachineHealth;
use crate::attempts::{Failure, backoff};
use crate::moment::after;

/// A machine that falls sick again within this time of an effort goes on with the next action.
const MEMORY: SignedDuration = SignedDuration::from_hours(1);
/// How often an action that is interrupted is tried.
const MOST_INTERRUPTIONS: usize = 3;

/// Something that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Name of the run.
    pub run: String,
    /// What.
    pub action: Action,
    /// When the run was made.
    pub made: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// The retry that asked for it.
    pub retry: Option<String>,
    /// What came out.
    pub result: Result,
}

/// What came out of an effort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Result {
    /// Not over yet.
    UnderWay,
    /// It was done.
    Done,
    /// It was tried on the machine, and failed.
    Failed(Failure),
    /// Nothing came to the machine, for a reason that lies elsewhere.
    NotTried(Failure),
    /// A person stopped it.
    Canceled,
    /// It was held at a pause.
    Held,
}

/// Where a machine stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// An action is under way.
    UnderWay { action: Action, run: String },
    /// An action was carried out, and the node has time to become Ready.
    Settles {
        action: Action,
        until: Timestamp,
        said: String,
    },
    /// It is tried again later.
    Later {
        at: Timestamp,
        reason: String,
        message: String,
    },
    /// This is next; with what was tried before, if anything was.
    Next {
        action: Action,
        retry: Option<String>,
        tried: Option<String>,
    },
    /// A person stopped it.
    Canceled { run: String },
    /// Everything was tried.
    Exhausted { message: String },
}

impl Stage {
    /// Whether something is being done about the machine.
    pub fn is_under_way(&self) -> bool {
        matches!(self, Stage::UnderWay { .. } | Stage::Settles { .. })
    }
}

/// What works on the machine now.
pub(super) fn under_way(health: &MachineHealth) -> Option<Stage> {
    let effort = health.efforts.last()?;
    (effort.result == Result::UnderWay).then(|| Stage::UnderWay {
        action: effort.action,
        run: effort.run.clone(),
    })
}

/// A machine on which nothing of the cluster works yet: it is replaced, or nothing is done.
pub(super) fn for_one_that_never_started(remediation: &Remediation) -> Stage {
    if remediation.actions.contains(&Action::Replace) {
        return Stage::Next {
            action: Action::Replace,
            retry: None,
            tried: None,
        };
    }
    Stage::Exhausted {
        message: "Replace is not among the actions, and nothing else helps a machine that never started"
            .into(),
    }
}

/// What comes next for a machine that has been sick since then.
pub(super) fn next(
    health: &MachineHealth,
    remediation: &Remediation,
    since: Timestamp,
    now: Timestamp,
) -> Stage {
    let efforts = of_this_spell(health, since);
    let wait = SignedDuration::from_secs(i64::from(remediation.wait_seconds));
    let mut silent = false;
    for action in remediation.actions.iter().copied() {
        if silent && action != Action::Replace {
            continue;
        }
        let of_action: Vec<&Effort> = efforts
            .iter()
            .copied()
            .filter(|effort| effort.action == action)
            .collect();
        let Some(last) = of_action.last() else {
            return begin(health, action, &efforts, wait, now);
        };
        match &last.result {
            Result::UnderWay => {
                return Stage::UnderWay {
                    action,
                    run: last.run.clone(),
                };
            }
            Result::Canceled => {
                return Stage::Canceled {
                    run: last.run.clone(),
                };
            }
            Result::Held => return again(health, last),
            Result::NotTried(failure) => {
                let in_vain = of_action
                    .iter()
                    .rev()
                    .take_while(|effort| matches!(effort.result, Result::NotTried(_)))
                    .count();
                let at = after(last.ended, backoff(in_vain));
                return if at > now {
                    later(at, action, last, failure)
                } else {
                    again(health, last)
                };
            }
            Result::Failed(failure) if failure.interrupted => {
                let interrupted = of_action
                    .iter()
                    .filter(|effort| matches!(&effort.result, Result::Failed(failure) if failure.interrupted))
                    .count();
                if interrupted < MOST_INTERRUPTIONS {
                    let at = after(last.ended, backoff(interrupted));
                    return if at > now {
                        later(at, action, last, failure)
                    } else {
                        again(health, last)
                    };
                }
            }
            Result::Failed(failure) => silent |= failure.is_silence(),
            Result::Done => {}
        }
    }
    exhausted(health, &efforts, remediation, silent, now)
}

fn begin(
    health: &MachineHealth,
    action: Action,
    efforts: &[&Effort],
    wait: SignedDuration,
    now: Timestamp,
) -> Stage {
    let Some(last) = efforts.iter().max_by_key(|effort| effort.ended) else {
        return Stage::Next {
            action,
            retry: health.retry.clone(),
            tried: None,
        };
    };
    if let Some(settles) = settles(health, last, wait, now) {
        return settles;
    }
    Stage::Next {
        action,
        retry: health.retry.clone(),
        tried: Some(outcome(last)),
    }
}

/// The machine has time to become well after whatever was tried, until it is looked at again.
fn settles(health: &MachineHealth, last: &Effort, wait: SignedDuration, now: Timestamp) -> Option<Stage> {
    let until = after(last.ended, wait);
    let unseen = health.seen_at.is_some_and(|at| at < until);
    (until > now || unseen).then(|| Stage::Settles {
        action: last.action,
        until,
        said: match last.result {
            Result::Done => format!(
                "run {} {}",
                last.run,
                super::words::done(last.action, health.role)
            ),
            _ => outcome(last),
        },
    })
}

fn again(health: &MachineHealth, last: &Effort) -> Stage {
    Stage::Next {
        action: last.action,
        retry: health.retry.clone(),
        tried: Some(outcome(last)),
    }
}

fn later(at: Timestamp, action: Action, last: &Effort, failure: &Failure) -> Stage {
    Stage::Later {
        at,
        reason: failure.reason.clone(),
        message: format!("{} of run {}: {}", super::name(action), last.run, failure.message),
    }
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
    let actions: Vec<&str> = remediation
        .actions
        .iter()
        .map(|action| super::name(*action))
        .collect();
    let message = match silent {
        true => format!(
            "SSH does not answer either, and Replace is not among the actions ({}): look at the machine, or delete the Machine",
            actions.join(", ")
        ),
        false => format!(
            "{} did not help: look at the machine, or delete the Machine",
            actions.join(" and ")
        ),
    };
    Stage::Exhausted { message }
}

/// `RestartServices did not help`, for the sentence on what comes next.
fn outcome(effort: &Effort) -> String {
    let action = super::name(effort.action);
    let run = &effort.run;
    match &effort.result {
        Result::UnderWay => format!("{action} is under way, run {run}"),
        Result::Done => format!("{action} did not help, run {run}"),
        Result::Failed(failure) | Result::NotTried(failure) => {
            format!("{action} failed, run {run}: {}", failure.message)
        }
        Result::Canceled => format!("{action} was canceled, run {run}"),
        Result::Held => format!("{action} was held at a pause, run {run}"),
    }
}

/// The efforts of this spell of sickness: up to now without a longer pause between two of them, and since the last
/// retry that a person asked for.
fn of_this_spell(health: &MachineHealth, since: Timestamp) -> Vec<&Effort> {
    let efforts = &health.efforts;
    let mut from = since;
    let mut first = efforts.len();
    for (index, effort) in efforts.iter().enumerate().rev() {
        let known = effort.result == Result::UnderWay || from.duration_since(effort.ended) <= MEMORY;
        if !known {
            break;
        }
        first = index;
        from = from.min(effort.made);
    }
    let asked = health.retry.as_ref().map(|retry| {
        let answered = efforts
            .iter()
            .position(|effort| effort.retry.as_ref() == Some(retry));
        // One that works is not forgotten by asking again.
        answered.unwrap_or_else(|| {
            let works = efforts
                .iter()
                .position(|effort| effort.result == Result::UnderWay);
            works.unwrap_or(efforts.len())
        })
    });
    efforts.iter().skip(first.max(asked.unwrap_or(0))).collect()
}
