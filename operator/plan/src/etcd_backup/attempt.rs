//! The attempts at a backup: what came of the last one, and whether there is another.

use crds::etcd_backup::BackupContent;
use crds::playbook_run::RunPhase;
use crds::{ObjectExt, PlaybookRun, Reason};
use jiff::Timestamp;

use crate::attempts::{backoff, ended_at};

/// Attempts at one backup.
const MOST: usize = 3;

/// What came of the last attempt.
#[derive(Debug, PartialEq)]
pub(super) enum Attempt<'a> {
    /// There was none.
    None,
    /// It goes on.
    UnderWay(&'a PlaybookRun),
    /// The backup is there.
    Succeeded(&'a PlaybookRun, &'a BackupContent),
    /// It failed, and there is another one from that moment on.
    Failed(&'a PlaybookRun, Timestamp),
    /// It failed, and there is no other: reason and message.
    GivenUp(String, String),
}

/// What came of the last of these runs, oldest first. A backup that is there counts however its run ended: a member that
/// was not needed may have failed in it.
pub(super) fn last<'a>(tried: &[&'a PlaybookRun]) -> Attempt<'a> {
    let made = tried.iter().find_map(|run| Some((*run, run.status.as_ref()?.backup.as_ref()?, is_over(run)?)));
    if let Some((run, content, ())) = made {
        return Attempt::Succeeded(run, content);
    }
    let Some(run) = tried.last().copied() else {
        return Attempt::None;
    };
    let Some(status) = run.status.as_ref().filter(|_| is_over(run).is_some()) else {
        return Attempt::UnderWay(run);
    };
    let said = status.message.clone().unwrap_or_else(|| format!("run {} ended without a backup", run.name()));
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
        Some(ended) if may_help && tried.len() < MOST => {
            let at = ended.saturating_add(backoff(tried.len())).unwrap_or(Timestamp::MAX);
            Attempt::Failed(run, at)
        }
        _ => {
            let reason = status.outcome.as_ref().map_or_else(|| Reason::RunFailed.into(), |told| told.reason.clone());
            Attempt::GivenUp(reason, format!("attempt {} of {MOST}, run {}: {said}", tried.len(), run.name()))
        }
    }
}

fn is_over(run: &PlaybookRun) -> Option<()> {
    crate::attempts::is_over(run).then_some(())
}
