//! Whether to try again: at once, later, where the last attempt stopped, or not without a person.
//!
//! An attempt that came further than all before it does not count, and the delay is short again. One that could not
//! even get into the machine has done nothing there, and one may wait for other machines of its cluster: those are
//! tried for as long as it takes, the later the longer between.

use crate::moment::after;
use jiff::{SignedDuration, Timestamp};

use super::{Failure, Outcome, PastAttempt};

const FIRST_DELAY_SECONDS: i64 = 15;
/// After lost contact: the cause is in the metadata cluster, not on the machine, and the guard there waits by itself
/// for what is left at work. Waiting here as well would only add up.
const FIRST_DELAY_AFTER_UNKNOWN_SECONDS: i64 = 5;
const LONGEST_DELAY_SECONDS: i64 = 600;

/// How often, and on whose word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Attempts without progress at the same; none: for ever.
    pub limit: Option<usize>,
    /// Digest of what is wanted now: a changed wish is worth new attempts.
    pub wanted: String,
    /// The Host's generation now: so is a changed Host.
    pub host_generation: Option<i64>,
    /// Retries that people ask for, already checked against the generations that they are meant for.
    pub retries: Vec<String>,
    /// What stops an attempt from outside so that a person decides on the next one.
    pub stops: Stops,
}

impl Policy {
    /// The same, and one that was stopped from outside waits for a person.
    pub fn stopped_is_final(self) -> Self {
        Self { stops: Stops::All, ..self }
    }

    /// The same, and one whose time was over waits for a person.
    pub fn deadline_is_final(self) -> Self {
        Self { stops: Stops::Deadline, ..self }
    }
}

/// What stops an attempt from outside, after which nothing is tried before a person asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stops {
    /// Nothing; where attempts are limited, that somebody cancels it.
    #[default]
    None,
    /// Beside that, its deadline.
    Deadline,
    /// That it is canceled, its deadline, that its Job is deleted.
    All,
}

/// Whether to try (again).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// Try now.
    Now {
        /// The attempt's number.
        attempt: i32,
        /// The retry that it answers.
        retry: Option<String>,
        /// The run that it goes on from, where that one stopped; none: from the first step.
        goes_on: Option<String>,
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
        /// How many attempts in a row came no further.
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

impl RetryDecision {
    /// The first attempt. A retry that asked before anything was tried is answered by it.
    pub fn first(retry: Option<String>) -> Self {
        RetryDecision::Now { attempt: 0, retry, goes_on: None }
    }

    /// The retry that is answered by an attempt that is due now.
    pub fn retry(&self) -> Option<String> {
        match self {
            RetryDecision::Now { retry, .. } => retry.clone(),
            _ => None,
        }
    }

    /// What went wrong last, where nothing is tried now.
    pub fn cause(&self) -> Option<&Failure> {
        match self {
            RetryDecision::Later { cause, .. } => Some(cause),
            RetryDecision::Halted { cause, .. } => cause.as_ref(),
            RetryDecision::Now { .. } | RetryDecision::UnderWay { .. } | RetryDecision::Done { .. } => None,
        }
    }

    /// Whether something that failed is tried again now.
    pub fn is_again(&self) -> bool {
        matches!(self, RetryDecision::Now { attempt: 1.., .. })
    }
}

/// Decides about the next attempt.
pub fn retry_decision(tried: &[PastAttempt], policy: &Policy, now: Timestamp) -> RetryDecision {
    let Some(last) = tried.last() else {
        return RetryDecision::first(policy.retries.first().cloned());
    };
    let unanswered = || {
        let fresh = |retry: &&String| tried.iter().all(|tried| tried.retry.as_ref() != Some(*retry));
        last.asked.iter().chain(&policy.retries).find(fresh).cloned()
    };
    let again = |retry: Option<String>| RetryDecision::Now {
        attempt: last.attempt.saturating_add(1),
        retry,
        goes_on: goes_on(last, policy),
    };
    let cause = match &last.outcome {
        Outcome::UnderWay => {
            return RetryDecision::UnderWay { run: last.run.clone() };
        }
        Outcome::Succeeded => {
            return RetryDecision::Done { run: last.run.clone(), at: last.ended };
        }
        // The pause is over, or nobody would ask.
        Outcome::Held => return again(unanswered()),
        Outcome::Failed(failure) => Some(failure.clone()),
        Outcome::Canceled => None,
    };
    if let Some(retry) = unanswered() {
        return again(Some(retry));
    }
    let counted: Vec<&PastAttempt> = tried.iter().filter(|tried| counts(tried, policy)).collect();
    if counted.is_empty() {
        return again(None);
    }
    if is_halted(&counted, cause.as_ref(), policy) {
        return RetryDecision::Halted { failures: counted.len(), cause };
    }
    let cause = cause.unwrap_or_else(Failure::canceled);
    let failures = consecutive_failures(&counted);
    let at = last.ended.map_or(now, |ended| after(ended, delay(&cause, failures)));
    if at <= now {
        return again(None);
    }
    RetryDecision::Later { at, failures, cause }
}

/// Whether nothing is tried again by itself; no cause: a person stopped the last attempt.
fn is_halted(counted: &[&PastAttempt], cause: Option<&Failure>, policy: &Policy) -> bool {
    // One whose executor did not start, or that waited for other machines, says nothing of this one: it is tried again,
    // the later the longer between, and counts for no limit.
    let begun = counted.iter().copied().filter(|tried| tried.says_something());
    let begun: Vec<&PastAttempt> = begun.collect();
    match (cause, policy.limit) {
        (Some(cause), _) if policy.stops == Stops::All && cause.was_stopped() => true,
        (Some(cause), _) if policy.stops == Stops::Deadline && cause.was_out_of_time() => true,
        (None, limit) => policy.stops == Stops::All || limit.is_some(),
        (Some(_), None) => false,
        (Some(cause), Some(_)) if cause.unreachable || !cause.has_begun() || cause.waits_for_others() => false,
        (Some(cause), Some(limit)) => !cause.retriable || consecutive_failures(&begun) >= limit,
    }
}

/// What was held at a pause counts for nothing; what was tried of another spec or on another Host says nothing of
/// these.
fn counts(tried: &PastAttempt, policy: &Policy) -> bool {
    let same_host = tried.host_generation.is_none()
        || policy.host_generation.is_none()
        || tried.host_generation == policy.host_generation;
    let same = policy.limit.is_none() || (tried.wanted.as_ref() == Some(&policy.wanted) && same_host);
    same && tried.outcome != Outcome::Held
}

impl PastAttempt {
    fn says_something(&self) -> bool {
        !matches!(&self.outcome, Outcome::Failed(failure) if !failure.has_begun() || failure.waits_for_others())
    }
}

/// Attempts in a row, up to the last one, that came no further than those before them. The first of all is one of them.
fn consecutive_failures(counted: &[&PastAttempt]) -> usize {
    let mut furthest: Option<usize> = None;
    counted.iter().fold(0, |failures, tried| {
        let further = furthest.is_some_and(|furthest| tried.steps_done > furthest);
        furthest = furthest.max(Some(tried.steps_done));
        if further { 0 } else { failures + 1 }
    })
}

/// The run that the next attempt goes on from. After an interruption what is done is done, and the probes say how much;
/// after a failure of its own, or with another spec, all steps are played again: they change nothing where they are
/// done, and what went wrong may have its cause in one that a probe takes for done.
fn goes_on(last: &PastAttempt, policy: &Policy) -> Option<String> {
    let stopped = match &last.outcome {
        Outcome::Held | Outcome::Canceled => true,
        // One that did not begin leaves things as it found them.
        Outcome::Failed(failure) if !failure.has_begun() => last.resumed,
        Outcome::Failed(failure) => failure.interrupted || failure.unreachable,
        Outcome::UnderWay | Outcome::Succeeded => false,
    };
    (stopped && last.wanted.as_ref() == Some(&policy.wanted)).then(|| last.run.clone())
}

/// How long to wait after so many attempts in vain.
pub fn backoff(failures: usize) -> SignedDuration {
    doubled(FIRST_DELAY_SECONDS, failures)
}

fn delay(cause: &Failure, failures: usize) -> SignedDuration {
    if cause.is_lost_contact() { doubled(FIRST_DELAY_AFTER_UNKNOWN_SECONDS, failures) } else { backoff(failures) }
}

fn doubled(first: i64, failures: usize) -> SignedDuration {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
    SignedDuration::from_secs((first << doublings).min(LONGEST_DELAY_SECONDS))
}

#[cfg(test)]
mod tests;
