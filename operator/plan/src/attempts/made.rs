//! The attempts of an object that has a run make one thing: what came of the last one, and whether there is another.

use crds::playbook_run::RunPhase;
use crds::{ObjectExt, PlaybookRun, Reason};
use jiff::Timestamp;

use super::{attempt_of, backoff, ended_at, is_over};
use crate::moment::after;

/// Attempts at one thing.
const MOST: usize = 3;

/// What came of the last attempt.
#[derive(Debug, PartialEq)]
pub enum Attempt<'a, T> {
    /// There was none.
    None,
    /// It goes on.
    UnderWay(&'a PlaybookRun),
    /// It made what it was for.
    Made(&'a PlaybookRun, T),
    /// It failed, and there is another one from that moment on.
    Failed(&'a PlaybookRun, Timestamp),
    /// It failed, and there is no other: reason and message.
    GivenUp(String, String),
}

/// The runs that an object owns and that are of one sort, oldest first.
pub fn owned_by<'a>(
    runs: &[&'a PlaybookRun],
    uid: &str,
    is_one: impl Fn(&PlaybookRun) -> bool,
) -> Vec<&'a PlaybookRun> {
    let mut ours: Vec<_> = runs.iter().copied().filter(|run| run.is_owned_by(uid) && is_one(run)).collect();
    ours.sort_by_key(|run| attempt_of(run));
    ours
}

/// The number of the next of these runs, oldest first: some of them may be gone.
pub fn next_number(tried: &[&PlaybookRun]) -> usize {
    tried.last().map_or(0, |last| usize::try_from(attempt_of(last)).unwrap_or_default() + 1)
}

/// Whether the run ended since its cluster is paused: the next one waits for that, and it was no attempt.
pub fn was_paused(run: &PlaybookRun) -> bool {
    run.status.as_ref().and_then(|status| status.end_reason()).is_some_and(|reason| reason == Reason::Paused)
}

/// What came of the last of these runs, oldest first. What is `made` counts however its run ended: a machine that was
/// not needed may have failed in it.
pub fn last<'a, T>(tried: &[&'a PlaybookRun], made: impl Fn(&'a PlaybookRun) -> Option<T>) -> Attempt<'a, T> {
    let mut over = tried.iter().copied().filter(|run| is_over(run));
    if let Some((run, made)) = over.find_map(|run| Some((run, made(run)?))) {
        return Attempt::Made(run, made);
    }
    let Some(run) = tried.last().copied() else {
        return Attempt::None;
    };
    let Some(status) = run.status.as_ref().filter(|_| is_over(run)) else {
        return Attempt::UnderWay(run);
    };
    let count = tried.iter().filter(|run| !was_paused(run)).count();
    if was_paused(run) {
        return Attempt::Failed(run, ended_at(run).unwrap_or_default());
    }
    let may_help = match status.phase {
        Some(RunPhase::Canceled) => false,
        Some(RunPhase::Failed) => status.retriable == Some(true),
        Some(
            RunPhase::Pending
            | RunPhase::Running
            | RunPhase::Succeeded
            | RunPhase::DeadlineExceeded
            | RunPhase::Unknown,
        )
        | None => true,
    };
    match ended_at(run) {
        Some(ended) if may_help && count < MOST => Attempt::Failed(run, after(ended, backoff(count))),
        _ => {
            let reason = reason_of(run);
            let message = format!("attempt {count} of {MOST}, run {}: {}", run.name(), said(run));
            Attempt::GivenUp(reason, message)
        }
    }
}

/// Why a run has failed, as far as it says.
pub fn reason_of(run: &PlaybookRun) -> String {
    let outcome = run.status.as_ref().and_then(|status| status.outcome.as_ref());
    outcome.map_or_else(|| Reason::RunFailed.into(), |told| told.reason.clone())
}

/// What a run says of itself.
pub fn said(run: &PlaybookRun) -> &str {
    let message = run.status.as_ref().and_then(|status| status.message.as_deref());
    message.unwrap_or(if is_over(run) { "it ended without a word" } else { "it begins" })
}
