//! When a cluster is looked at again.

use crds::conditions::Statement;
use crds::names::condition;
use crds::{Conditions, ObjectExt};
use jiff::SignedDuration;

use super::apply::Work;
use super::observed::Observed;
use crate::Next;
use crate::naming::offset;

/// When a cluster that did not answer is asked again, if nobody says before that it does.
pub(super) const ASK_AGAIN_SECONDS: u64 = 30;

/// When to look again: soon while something goes on, and later the longer it does.
pub(super) fn next(
    observed: &Observed<'_>,
    work: &Work,
    (applied, healthy): (&Statement, &Statement),
    paused: bool,
) -> Next {
    if paused {
        return resync(observed);
    }
    if !work.now.is_empty() {
        return Next::after_seconds(1);
    }
    match (applied.status, healthy.status) {
        (Some(true), Some(true)) => resync(observed),
        (Some(true), _) => Next::after_seconds(pause(observed, condition::HEALTHY)),
        _ => Next::after_seconds(pause(observed, condition::APPLIED)),
    }
}

/// Seconds until one looks again that is not as it should be: a quarter of the time that it has been so, 2 to 30.
pub(super) fn pause(observed: &Observed<'_>, type_: &str) -> u64 {
    let since = observed.object.condition(type_).filter(|there| there.status != "True");
    let seconds = since.map_or(0, |there| observed.now.as_second() - there.last_transition_time.0.as_second());
    u64::try_from(seconds / 4).unwrap_or_default().clamp(2, 30)
}

/// When one that is well is compared again: not all at the same time.
pub(super) fn resync(observed: &Observed<'_>) -> Next {
    let seconds = observed.addon.map_or(600, |addon| addon.spec.resync_seconds);
    let seconds = u64::try_from(seconds).unwrap_or(600).max(60);
    let spread: SignedDuration = offset(observed.object.uid(), seconds / 5);
    Next::after_seconds(seconds - u64::try_from(spread.as_secs()).unwrap_or_default())
}
