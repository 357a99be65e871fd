//! When to look at a cluster again: often while something is on its way, seldom once it has been away for long.

use std::time::Duration;

use crds::ClusterStatus;
use crds::Reason;
use crds::names::condition;

use super::observed::{Contact, Observed};
use crate::Next;

const PERIOD_SECONDS: f64 = 30.0;
const HURRY_SECONDS: f64 = 10.0;
const SOON_SECONDS: f64 = 5.0;
const IN_THE_MAKING_SECONDS: f64 = 1800.0;
const LONGEST_BACKOFF_SECONDS: f64 = 120.0;
pub(super) fn next(observed: &Observed<'_>, status: &ClusterStatus) -> Next {
    let spread = 0.8 + 0.4 * observed.chance.clamp(0.0, 1.0);
    let seconds = match (&observed.contact, &status.unreachable_since) {
        // Somebody is about to write it.
        (Contact::Refused { reason: Reason::SecretNotFound, .. }, _) => SOON_SECONDS,
        // The longer it has been away, the less often it is looked for; one that was never there may be in the making.
        (Contact::Lost { .. }, Some(since)) => {
            let away = observed.now.0.duration_since(since.0).as_secs_f64();
            let in_the_making = status.cluster_uid.is_none() && away < IN_THE_MAKING_SECONDS;
            let longest = if in_the_making { SOON_SECONDS } else { LONGEST_BACKOFF_SECONDS };
            (away / 4.0).clamp(SOON_SECONDS, longest)
        }
        (Contact::Made { .. }, _) if !crds::conditions::is_true(&status.conditions, condition::READY) => HURRY_SECONDS,
        _ => PERIOD_SECONDS,
    };
    Next::After(Duration::from_millis((seconds * spread * 1000.0) as u64))
}
