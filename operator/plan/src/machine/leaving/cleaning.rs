//! The cleaning of a machine that leaves: a Reset run, again and again until it is clean, or until that is given up.

use crds::ObjectExt;
use crds::cluster_deployment::DeletionPolicy;
use crds::host::{Quarantine, QuarantineReason};
use crds::step::{Intent, Step as RunStep};
use crds::{Host, PlaybookRun};
use jiff::Timestamp;

use super::force::{self, Force};
use super::{Observed, name_of, quarantine, status};
use crate::attempts::{self, Failure, Outcome};
use crate::moment::clock;
use crate::provisioning;

/// Where the cleaning stands.
pub(super) enum Cleaning {
    /// The Host may be given back; with a quarantine, if there is one.
    Over(Option<Quarantine>),
    /// What it waits for, and when to look again.
    Waits(String, Option<Timestamp>),
}

pub(super) fn of(observed: &Observed<'_>, held: &Host, force: Option<Force>) -> Cleaning {
    let host = name_of(held);
    let by_set = quarantine::by_set(observed);
    let deployment = observed.deployment;
    let detach = deployment.is_none_or(|deployment| {
        deployment.is_deleting() && deployment.spec.deletion_policy == DeletionPolicy::Detach
    });
    let touched = provisioning::was_touched(observed.machine, observed.runs);
    if detach || !touched || is_clean(observed, host) {
        return Cleaning::Over(by_set);
    }
    if let Some(force) = force {
        let forced = || quarantine::of(observed, QuarantineReason::ForceRemoved, force.why());
        let quarantine = by_set.unwrap_or_else(forced);
        return Cleaning::Over(Some(quarantine::given_up(observed, held, quarantine)));
    }
    let most = deployment.map_or(1, provisioning::most_attempts);
    let failures: Vec<Failure> = failures(observed, host);
    if failures.len() >= most
        && let Some(last) = failures.last()
    {
        let message = format!(
            "not clean after {}: {}: {}",
            crate::sentence::count(failures.len(), "attempt"),
            last.reason,
            last.message
        );
        let failed = quarantine::of(observed, QuarantineReason::CleaningFailed, message);
        return Cleaning::Over(Some(quarantine::given_up(observed, held, failed)));
    }
    Cleaning::Waits(waits_for_reset(observed, host), force::until(observed, host))
}

/// Whether a run since the deletion has left the machine clean.
pub(super) fn is_clean(observed: &Observed<'_>, host: &str) -> bool {
    resets(observed, host).any(|run| attempts::outcome(run, host) == Outcome::Succeeded)
}

/// The attempts that reached the machine and did not clean it, oldest first.
fn failures(observed: &Observed<'_>, host: &str) -> Vec<Failure> {
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

/// The runs since the deletion that were to clean the machine, an administrator's too.
pub(super) fn resets<'a>(observed: &'a Observed<'_>, host: &'a str) -> impl Iterator<Item = &'a PlaybookRun> {
    let deleted = observed
        .machine
        .metadata
        .deletion_timestamp
        .as_ref()
        .map(|time| time.0);
    let since = move |run: &PlaybookRun| -> bool {
        let made: Option<Timestamp> = run.created_at().map(|time| time.0);
        made >= deleted
    };
    observed
        .runs
        .iter()
        .copied()
        .filter(|run| run.spec.intent != Intent::Probe && run.spec.steps.contains(&RunStep::Reset))
        .filter(move |run| since(run) && run.spec.hosts.iter().any(|named| named == host))
}

fn waits_for_reset(observed: &Observed<'_>, host: &str) -> String {
    let last = resets(observed, host).max_by_key(|run| attempts::attempt_of(run));
    let goes_on = observed
        .deployment
        .is_some_and(|deployment| !deployment.is_deleting());
    match last.map(|run| attempts::outcome(run, host)) {
        Some(Outcome::Failed(failure)) if goes_on && failure.was_stopped() => format!(
            "the reset of Host {host} was stopped ({}): {}; look at the machine, then {}",
            failure.reason,
            failure.message,
            status::retry(observed)
        ),
        Some(Outcome::Failed(failure)) => {
            let mut message = format!(
                "Host {host} could not be cleaned ({}): {}; it is tried again",
                failure.reason, failure.message
            );
            if failure.unreachable {
                message.push_str(&format!("; {}", forgotten(observed, host)));
            }
            message
        }
        Some(Outcome::Canceled) if goes_on => format!(
            "the reset of Host {host} was canceled; look at the machine, then {}",
            status::retry(observed)
        ),
        Some(Outcome::Canceled) => format!("the reset of Host {host} was canceled; it is tried again"),
        Some(Outcome::Held) => format!("the reset of Host {host} waits for the end of the pause"),
        _ => format!("waits for the reset of Host {host}"),
    }
}

/// When a machine that does not answer is forgotten, or what a person types for that.
fn forgotten(observed: &Observed<'_>, host: &str) -> String {
    match force::until(observed, host) {
        Some(until) => format!(
            "if it stays dead it is removed without cleaning at {}",
            clock(until)
        ),
        None => format!("if it is dead: {}", force::command(observed)),
    }
}
