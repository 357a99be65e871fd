//! The attempts at a backup: what came of the last one, and whether there is another.

use crds::etcd_backup::BackupContent;
use crds::playbook_run::RunPhase;
use crds::{ObjectExt, PlaybookRun, Reason};
use jiff::Timestamp;

use crate::attempts::{backoff, ended_at, is_over};
use crate::moment::after;

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
    let mut over = tried.iter().copied().filter(|run| is_over(run));
    let made = over.find_map(|run| Some((run, run.status.as_ref()?.backup.as_ref()?)));
    if let Some((run, content)) = made {
        return Attempt::Succeeded(run, content);
    }
    let Some(run) = tried.last().copied() else {
        return Attempt::None;
    };
    let Some(status) = run.status.as_ref().filter(|_| is_over(run)) else {
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
        Some(ended) if may_help && tried.len() < MOST => Attempt::Failed(run, after(ended, backoff(tried.len()))),
        _ => {
            let reason = status.outcome.as_ref().map_or_else(|| Reason::RunFailed.into(), |told| told.reason.clone());
            Attempt::GivenUp(
                reason,
                format!(
                    "attempt {} of {MOST}, run {}: {said}; to try again, make a new EtcdBackup",
                    tried.len(),
                    run.name()
                ),
            )
        }
    }
}
