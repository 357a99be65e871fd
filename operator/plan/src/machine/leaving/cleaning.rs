//! The cleaning of a machine that leaves: a Reset run, again and again until it is clean, or until that is given up.

use crds::Host;
use crds::ObjectExt;
use crds::host::{Quarantine, QuarantineReason};
use jiff::Timestamp;

use super::force::{self, Force};
use super::quarantine::{by_set, given_up, quarantine};
use super::resets::{failures, is_clean, resets};
use crate::attempts::{self, Failure, Outcome};
use crate::machine::observed::Observed;
use crate::machine::retry::retry;
use crate::moment::clock;
use crate::provisioning;

/// Where the cleaning stands.
pub(super) enum Cleaning {
    /// The Host may be given back; with a quarantine, if there is one.
    Over(Option<Quarantine>),
    /// What it waits for, and when to look again.
    Waits(String, Option<Timestamp>),
}

pub(super) fn clean(observed: &Observed<'_>, held: &Host, force: Option<Force>) -> Cleaning {
    let host = held.name();
    let asked = by_set(observed);
    let detach = observed.formed.is_none_or(|cluster| cluster.is_deleting && cluster.detaches);
    let touched = provisioning::was_touched(observed.machine, observed.runs);
    if detach || !touched || is_clean(observed, host) {
        return Cleaning::Over(asked);
    }
    if let Some(force) = force {
        let forced = || quarantine(observed, QuarantineReason::ForceRemoved, force.why());
        let asked = asked.unwrap_or_else(forced);
        return Cleaning::Over(Some(given_up(observed, held, asked)));
    }
    let most = || observed.formed.map_or(1, |cluster| cluster.terms.terms().most);
    let failures: Vec<Failure> = failures(observed, host);
    if let Some(last) = failures.last()
        && failures.len() >= most()
    {
        let message = format!(
            "not clean after {}: {}: {}",
            crate::message::count(failures.len(), "attempt"),
            last.reason,
            last.message
        );
        let failed = quarantine(observed, QuarantineReason::CleaningFailed, message);
        return Cleaning::Over(Some(given_up(observed, held, failed)));
    }
    Cleaning::Waits(waits_for_reset(observed, host), force::until(observed, host))
}

fn waits_for_reset(observed: &Observed<'_>, host: &str) -> String {
    let last = resets(observed, host).max_by_key(|run| attempts::attempt_of(run));
    let goes_on = observed.formed.is_some_and(|cluster| !cluster.is_deleting);
    match last.map(|run| attempts::outcome(run, host)) {
        Some(Outcome::Failed(failure)) if goes_on && failure.was_stopped() => format!(
            "the reset of Host {host} was stopped ({}): {}; look at the machine, then {}",
            failure.reason,
            failure.message,
            retry(observed)
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
        Some(Outcome::Canceled) if goes_on => {
            format!("the reset of Host {host} was canceled; look at the machine, then {}", retry(observed))
        }
        Some(Outcome::Canceled) => format!("the reset of Host {host} was canceled; it is tried again"),
        Some(Outcome::Held) => format!("the reset of Host {host} waits for the end of the pause"),
        _ => format!("waits for the reset of Host {host}"),
    }
}

/// When a machine that does not answer is forgotten, or what a person types for that.
fn forgotten(observed: &Observed<'_>, host: &str) -> String {
    match force::until(observed, host) {
        Some(until) => format!("if it stays dead it is removed without cleaning at {}", clock(until)),
        None => format!("if it is dead: {}", force::command(observed)),
    }
}
