//! BackupStorage: has it looked at by a Job, now and then and after each change, and shows what that found.

mod look;
mod observed;
mod probe;
mod status;
mod usable;

use crds::{BackupStorage, BackupStorageStatus, ObjectExt};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;

use crate::inputs::storage;
use crate::moment::after;
use crate::{Next, Plan};
use look::Look;
pub use observed::Observed;
pub(crate) use usable::usable;

/// From one look to the next.
const INTERVAL_SECONDS: i64 = 600;
/// The same while it cannot be used.
const INTERVAL_WHILE_UNREACHABLE_SECONDS: i64 = 60;
/// Secrets, ConfigMaps and the Jobs that look are not watched.
const LOOK_SECONDS: u64 = 2;

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create this Job, unless it is there already.
    Look(Box<Job>),
    /// Delete a Job that has looked.
    Forget(Box<Job>),
}

/// Whether it is time to look, or somebody is at it: only then are its references, Jobs and Pods worth reading.
pub fn is_due(storage: &BackupStorage, now: Timestamp) -> bool {
    let status = storage.status.as_ref();
    let of_this_spec = status.filter(|status| status.observed_generation == storage.metadata.generation);
    of_this_spec.is_none_or(|status| wait(status, now) <= 0)
}

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Action, BackupStorageStatus> {
    let (of_backups, now) = (observed.storage, observed.now);
    if !is_due(of_backups, now) {
        let status = of_backups.status.clone().unwrap_or_default();
        return Plan { actions: Vec::new(), next: next(&status, now), status, waits_for: None };
    }
    let current = probe::name(of_backups);
    let (ours, old): (Vec<&Job>, Vec<&Job>) = observed.jobs.iter().partition(|job| job.name() == current);
    let mut actions: Vec<Action> = old.into_iter().map(|job| Action::Forget(Box::new(job.clone()))).collect();
    let begun = ours.first().copied();
    let look = match (begun, storage(of_backups, observed.seen)) {
        (Some(job), _) => look::look(job, observed.pods),
        (None, Err(problem)) => Look::Unusable(problem.reason.into(), problem.message),
        (None, Ok(inputs)) => {
            actions.push(Action::Look(Box::new(probe::job(of_backups, observed.seen, &inputs, observed.image))));
            Look::UnderWay(None)
        }
    };
    let is_over = !matches!(look, Look::UnderWay(_));
    // The status is written first: the Job goes once what it found is kept.
    actions.extend(begun.filter(|_| is_over).map(|job| Action::Forget(Box::new(job.clone()))));
    let status = status::after(observed, &look);
    let (next, waits_for) = match is_over {
        true => (next(&status, now), None),
        false => (Next::after_seconds(LOOK_SECONDS), Some("its probe".to_owned())),
    };
    Plan { actions, status, next, waits_for }
}

/// Seconds until the next look; 0: nobody has looked yet.
fn wait(status: &BackupStorageStatus, now: Timestamp) -> i64 {
    let interval = if status::is_reachable(status) { INTERVAL_SECONDS } else { INTERVAL_WHILE_UNREACHABLE_SECONDS };
    let due = status.probed_at.as_ref().map(|probed| after(probed.0, SignedDuration::from_secs(interval)));
    due.map_or(0, |due| due.as_second() - now.as_second())
}

fn next(status: &BackupStorageStatus, now: Timestamp) -> Next {
    Next::after_seconds(u64::try_from(wait(status, now)).unwrap_or_default().max(1))
}

#[cfg(test)]
mod tests;
