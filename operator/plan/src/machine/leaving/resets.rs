//! The Reset runs of a machine that leaves, and what came of them.

use crds::step::{Intent, Step};
use crds::{ObjectExt, PlaybookRun};
use jiff::Timestamp;

use crate::attempts::{self, Failure, Outcome};
use crate::machine::observed::Observed;

/// The runs since the deletion that were to clean the machine, an administrator's too.
pub(super) fn resets<'a>(observed: &'a Observed<'_>, host: &'a str) -> impl Iterator<Item = &'a PlaybookRun> {
    let deleted = observed.machine.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    let since = move |run: &PlaybookRun| -> bool {
        let made: Option<Timestamp> = run.created_at().map(|time| time.0);
        made >= deleted
    };
    observed
        .runs
        .iter()
        .copied()
        .filter(|run| run.spec.intent != Intent::Probe && run.spec.steps.contains(&Step::Reset))
        .filter(move |run| since(run) && run.spec.hosts.iter().any(|named| named == host))
}

/// Whether a run since the deletion has left the machine clean.
pub(super) fn is_clean(observed: &Observed<'_>, host: &str) -> bool {
    resets(observed, host).any(|run| attempts::outcome(run, host) == Outcome::Succeeded)
}

/// The attempts that reached the machine and did not clean it, oldest first.
pub(super) fn failures(observed: &Observed<'_>, host: &str) -> Vec<Failure> {
    let mut ended: Vec<(Option<Timestamp>, Failure)> = resets(observed, host)
        .filter_map(|run| match attempts::outcome(run, host) {
            Outcome::Failed(failure) => Some((attempts::ended_at(run), failure)),
            _ => None,
        })
        .filter(|(_, failure)| !failure.unreachable && !failure.interrupted && failure.has_begun())
        .collect();
    ended.sort_by_key(|(at, _)| *at);
    ended.into_iter().map(|(_, failure)| failure).collect()
}

/// Whether nothing was tried on the machine.
pub(super) fn has_not_begun(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed(failure) => !failure.has_begun(),
        Outcome::UnderWay | Outcome::Held | Outcome::Canceled => true,
        Outcome::Succeeded => false,
    }
}
