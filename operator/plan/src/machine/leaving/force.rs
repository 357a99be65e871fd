//! Force: a machine that is dead is forgotten without reaching it, on a person's word or after a time.

use crds::Machine;
use crds::commands::{self, Target};
use crds::names::annotation;
use jiff::{SignedDuration, Timestamp};

use super::resets::{has_not_begun, resets};
use crate::attempts::{self, Outcome};
use crate::formed_cluster::FormedCluster;
use crate::machine::observed::Observed;
use crate::moment::{after, day_and_clock};

/// Why a machine is forgotten without reaching it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Force {
    /// A person says so.
    ByHand,
    /// It could not be reached for so long.
    ByTime {
        /// Since when.
        since: Timestamp,
    },
}

impl Force {
    /// Half a sentence.
    pub fn why(self) -> String {
        match self {
            Force::ByHand => format!("removed by {} without reaching it", annotation::FORCE_REMOVE),
            Force::ByTime { since } => {
                format!("removed without reaching it: it has not answered since {}", day_and_clock(since))
            }
        }
    }
}

pub(super) fn removal(observed: &Observed<'_>, host: &str) -> Option<Force> {
    if is_asked(observed.machine) {
        return Some(Force::ByHand);
    }
    let (since, until) = silence(observed, host)?;
    (observed.now >= until).then_some(Force::ByTime { since })
}

/// When a machine that does not answer is forgotten, if that is still to come.
pub(super) fn until(observed: &Observed<'_>, host: &str) -> Option<Timestamp> {
    let (_, until) = silence(observed, host)?;
    (until > observed.now).then_some(until)
}

/// Whether a person says so; the deletion raises the generation by one: what was meant for the one before it was meant
/// for this removal.
pub(super) fn is_asked(machine: &Machine) -> bool {
    let metadata = &machine.metadata;
    let mut before = metadata.clone();
    before.generation = metadata.generation.map(|generation| generation - 1);
    let is_leaving = metadata.deletion_timestamp.is_some();
    attempts::names_generation(metadata, annotation::FORCE_REMOVE)
        || (is_leaving && attempts::names_generation(&before, annotation::FORCE_REMOVE))
}

/// Whether the cluster remembers the machine after it is forgotten: what stands for it there is taken away when its API
/// answers.
pub(super) fn is_written_down(machine: &Machine, cluster: FormedCluster<'_>) -> bool {
    let mut forgotten = cluster.forgotten.iter();
    forgotten.any(|one| Some(&one.uid) == machine.metadata.uid.as_ref())
}

/// What a person types to have it forgotten.
pub(super) fn command(observed: &Observed<'_>) -> String {
    let metadata = &observed.machine.metadata;
    let generation = metadata.generation.unwrap_or_default();
    commands::annotate(Target::Machine, metadata, annotation::FORCE_REMOVE, generation)
}

/// Since when the machine has not answered to what was to clean it, and when that has been long enough.
fn silence(observed: &Observed<'_>, host: &str) -> Option<(Timestamp, Timestamp)> {
    let seconds = observed.formed?.force_remove_after_seconds?;
    let ended: Vec<_> = resets(observed, host)
        .filter(|run| attempts::is_over(run))
        .map(|run| (attempts::ended_at(run), attempts::outcome(run, host)))
        .collect();
    let silent = |outcome: &Outcome| matches!(outcome, Outcome::Failed(failure) if failure.unreachable);
    let (_, last) = ended.iter().max_by_key(|(at, _)| *at)?;
    if !silent(last) {
        return None;
    }
    let answered =
        ended.iter().filter(|(_, outcome)| !silent(outcome) && !has_not_begun(outcome)).filter_map(|(at, _)| *at).max();
    let deleted = observed.machine.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    let since = answered.max(deleted)?;
    Some((since, after(since, SignedDuration::from_secs(seconds.into()))))
}
