//! Attempts: what our runs remember of themselves, what came out for one machine, and whether to try again.

mod outcome;

use std::collections::BTreeMap;

use crds::PlaybookRun;
use crds::names::annotation;
use crds::playbook_run::RunPhase;
use crds::step::Intent;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use outcome::{Failure, Outcome, outcome};

const FIRST_DELAY_SECONDS: i64 = 15;
const LONGEST_DELAY_SECONDS: i64 = 600;

/// The Machine that a Host was in a run, and the retry that a person asked for, if that is why it was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// UID of the Machine.
    pub uid: String,
    /// Value of the annotation that asked for this attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<String>,
}

/// The Machines of a run, by Host; empty for a run that no controller of ours made.
pub fn marks(run: &PlaybookRun) -> BTreeMap<String, Mark> {
    let text = annotation_of(run, annotation::MACHINES);
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// How often the same was tried before the run.
pub fn attempt_of(run: &PlaybookRun) -> i32 {
    number(run, annotation::ATTEMPT).map_or(0, |number| i32::try_from(number).unwrap_or(i32::MAX))
}

/// The generation of the ClusterDeployment that the run was made from.
pub fn generation_of(run: &PlaybookRun) -> Option<i64> {
    number(run, annotation::GENERATION)
}

fn number(run: &PlaybookRun, key: &str) -> Option<i64> {
    annotation_of(run, key)?.parse().ok()
}

fn annotation_of<'a>(run: &'a PlaybookRun, key: &str) -> Option<&'a str> {
    let annotations = run.metadata.annotations.as_ref()?;
    annotations.get(key).map(String::as_str)
}

/// True once nothing more comes of the run.
pub fn is_over(run: &PlaybookRun) -> bool {
    let status = run.status.as_ref();
    status
        .and_then(|status| status.phase)
        .is_some_and(RunPhase::is_final)
}

/// When nothing more came of the run.
pub fn ended_at(run: &PlaybookRun) -> Option<Timestamp> {
    let finished = run.status.as_ref().and_then(|status| status.finished_at.as_ref());
    finished
        .or(run.metadata.creation_timestamp.as_ref())
        .map(|time| time.0)
}

/// One earlier attempt at the same thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Name of the run.
    pub run: String,
    /// Its number.
    pub attempt: i32,
    /// Generation of the ClusterDeployment that it was made from.
    pub generation: Option<i64>,
    /// The retry that asked for it.
    pub retry: Option<String>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// What came out.
    pub outcome: Outcome,
}

/// The attempts at an intent for a machine, oldest first. With `since`, only those that were made from then on.
pub fn tried(
    runs: &[&PlaybookRun],
    intents: &[Intent],
    machine_uid: &str,
    since: Option<Timestamp>,
) -> Vec<Tried> {
    let made = |run: &PlaybookRun| run.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let mut tried: Vec<Tried> = runs
        .iter()
        .filter(|run| intents.contains(&run.spec.intent))
        .filter(|run| since.is_none_or(|since| made(run).is_none_or(|made| made >= since)))
        .filter_map(|run| {
            let marks = marks(run);
            let (host, mark) = marks.iter().find(|(_, mark)| mark.uid == machine_uid)?;
            Some(Tried {
                run: run.metadata.name.clone().unwrap_or_default(),
                attempt: attempt_of(run),
                generation: generation_of(run),
                retry: mark.retry.clone(),
                ended: ended_at(run),
                outcome: outcome(run, host),
            })
        })
        .collect();
    tried.sort_by_key(|tried| tried.attempt);
    tried
}

/// How often, and on whose word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Attempts for one generation; none: for ever.
    pub limit: Option<usize>,
    /// The generation that is wanted now: a changed spec is worth new attempts.
    pub generation: i64,
    /// A retry that a person asks for, already checked against the generation it is meant for.
    pub retry: Option<String>,
}

/// Whether to try (again).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Try now.
    Now {
        /// The attempt's number.
        attempt: i32,
        /// The retry that it answers.
        retry: Option<String>,
    },
    /// One is under way.
    UnderWay {
        /// Name of the run.
        run: String,
    },
    /// It is done.
    Done {
        /// Name of the run.
        run: String,
        /// When.
        at: Option<Timestamp>,
    },
    /// Try again later.
    Later {
        /// When.
        at: Timestamp,
        /// How many attempts failed.
        failures: usize,
        /// What went wrong last.
        cause: Failure,
    },
    /// Nothing is tried again by itself.
    Halted {
        /// How many attempts failed.
        failures: usize,
        /// What went wrong last; none: a person stopped it.
        cause: Option<Failure>,
    },
}

/// Decides about the next attempt.
pub fn turn(tried: &[Tried], policy: &Policy, now: Timestamp) -> Turn {
    let Some(last) = tried.last() else {
        return Turn::Now {
            attempt: 0,
            retry: None,
        };
    };
    let cause = match &last.outcome {
        Outcome::UnderWay => {
            return Turn::UnderWay {
                run: last.run.clone(),
            };
        }
        Outcome::Succeeded => {
            return Turn::Done {
                run: last.run.clone(),
                at: last.ended,
            };
        }
        Outcome::Failed(failure) => Some(failure.clone()),
        Outcome::Canceled => None,
    };
    let attempt = last.attempt.saturating_add(1);
    let fresh = |retry: &&String| tried.iter().all(|tried| tried.retry.as_ref() != Some(*retry));
    if let Some(retry) = policy.retry.as_ref().filter(fresh) {
        return Turn::Now {
            attempt,
            retry: Some(retry.clone()),
        };
    }
    let counted = tried
        .iter()
        .filter(|tried| policy.limit.is_none() || tried.generation == Some(policy.generation));
    let failures = counted.count();
    if failures == 0 {
        return Turn::Now { attempt, retry: None };
    }
    let halted = match (&cause, policy.limit) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(cause), Some(limit)) => !cause.retriable || failures >= limit,
    };
    if halted {
        return Turn::Halted { failures, cause };
    }
    let at = last.ended.map_or(now, |ended| ended + delay(failures));
    if at <= now {
        return Turn::Now { attempt, retry: None };
    }
    let cause = cause.unwrap_or(Failure {
        reason: "Canceled".into(),
        message: "a person stopped it".into(),
        retriable: true,
        unreachable: false,
    });
    Turn::Later { at, failures, cause }
}

fn delay(failures: usize) -> SignedDuration {
    let doublings = u32::try_from(failures.saturating_sub(1))
        .unwrap_or(u32::MAX)
        .min(16);
    SignedDuration::from_secs((FIRST_DELAY_SECONDS << doublings).min(LONGEST_DELAY_SECONDS))
}

/// The retry that an object's annotation asks for, if it is meant for this generation: `7`, or `7.2` for a second one.
pub fn asked_retry(annotations: Option<&BTreeMap<String, String>>, generation: i64) -> Option<String> {
    let value = annotations?.get(annotation::RETRY)?;
    let meant_for = value.split('.').next()?;
    (meant_for.parse() == Ok(generation)).then(|| value.clone())
}

#[cfg(test)]
mod tests {
    use super::{Failure, Outcome, Policy, Tried, Turn, turn};
    use jiff::{SignedDuration, Timestamp};

    fn failure(retriable: bool) -> Failure {
        Failure {
            reason: "TaskFailed".into(),
            message: "no".into(),
            retriable,
            unreachable: false,
        }
    }

    fn failed(attempt: i32, generation: i64, retry: Option<&str>, retriable: bool) -> Tried {
        Tried {
            run: format!("r-{attempt}"),
            attempt,
            generation: Some(generation),
            retry: retry.map(Into::into),
            ended: Some(Timestamp::UNIX_EPOCH),
            outcome: Outcome::Failed(failure(retriable)),
        }
    }

    fn policy(retry: Option<&str>) -> Policy {
        Policy {
            limit: Some(3),
            generation: 1,
            retry: retry.map(Into::into),
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    #[test]
    fn a_failed_attempt_is_repeated_after_a_delay_that_doubles() {
        let one = [failed(0, 1, None, true)];
        let two = [failed(0, 1, None, true), failed(1, 1, None, true)];
        let check = |tried: &[Tried], now, expected: Option<i64>| match turn(tried, &policy(None), at(now)) {
            Turn::Later { at: when, .. } => assert_eq!(Some(when), expected.map(at)),
            Turn::Now { .. } => assert_eq!(expected, None),
            other => panic!("{other:?}"),
        };
        check(&one, 0, Some(15));
        check(&one, 15, None);
        check(&two, 29, Some(30));
        check(&two, 30, None);
    }

    #[test]
    fn after_the_last_attempt_nothing_is_tried_until_a_person_asks_or_the_spec_changes() {
        let three: Vec<Tried> = (0..3).map(|attempt| failed(attempt, 1, None, true)).collect();
        assert!(matches!(
            turn(&three, &policy(None), at(9999)),
            Turn::Halted { failures: 3, .. }
        ));
        let asked = turn(&three, &policy(Some("1")), at(0));
        assert_eq!(
            asked,
            Turn::Now {
                attempt: 3,
                retry: Some("1".into())
            }
        );
        let mut four = three.clone();
        four.push(failed(3, 1, Some("1"), true));
        assert!(matches!(
            turn(&four, &policy(Some("1")), at(9999)),
            Turn::Halted { .. }
        ));
        assert!(matches!(
            turn(&four, &policy(Some("1.2")), at(0)),
            Turn::Now { attempt: 4, .. }
        ));
        let newer = Policy {
            generation: 2,
            ..policy(None)
        };
        assert!(matches!(
            turn(&three, &newer, at(0)),
            Turn::Now { attempt: 3, .. }
        ));
    }

    #[test]
    fn what_cannot_help_is_not_tried_again() {
        assert!(matches!(
            turn(&[failed(0, 1, None, false)], &policy(None), at(9999)),
            Turn::Halted { .. }
        ));
        let canceled = Tried {
            outcome: Outcome::Canceled,
            ..failed(0, 1, None, true)
        };
        assert!(matches!(
            turn(&[canceled], &policy(None), at(9999)),
            Turn::Halted { cause: None, .. }
        ));
    }

    #[test]
    fn without_a_limit_it_goes_on_for_ever_and_waits_ten_minutes_at_most() {
        let many: Vec<Tried> = (0..40).map(|attempt| failed(attempt, 1, None, false)).collect();
        let forever = Policy {
            limit: None,
            ..policy(None)
        };
        assert!(matches!(turn(&many, &forever, at(0)), Turn::Later { at: when, .. } if when == at(600)));
    }
}
