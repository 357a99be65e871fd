//! A backup that has ended is deleted after its `ttlSeconds`.

use crds::names::condition;
use crds::{Conditions, EtcdBackup};
use jiff::{SignedDuration, Timestamp};

use super::needed::needed_by;
use super::observed::Observed;
use crate::Next;
use crate::moment::after;

/// What needs it may end.
const LOOK_AGAIN_SECONDS: u64 = 60;

/// Whether it is time, or when.
pub(super) enum Expiry {
    Due,
    Later(Next),
}

pub(super) fn expiry(observed: &Observed<'_>) -> Expiry {
    let backup = observed.backup;
    let Some((seconds, ended)) = backup.spec.ttl_seconds.zip(ended_at(backup)) else {
        return Expiry::Later(Next::OnChange);
    };
    let due = after(ended, SignedDuration::from_secs(seconds.into()));
    if due > observed.now {
        let seconds = u64::try_from(due.as_second() - observed.now.as_second()).unwrap_or_default();
        return Expiry::Later(Next::after_seconds(seconds.max(1)));
    }
    match observed.restores.map(|restores| needed_by(backup, restores, observed.deployments)) {
        Some(None) => Expiry::Due,
        Some(Some(_)) | None => Expiry::Later(Next::after_seconds(LOOK_AGAIN_SECONDS)),
    }
}

/// When it was there, or given up.
fn ended_at(backup: &EtcdBackup) -> Option<Timestamp> {
    let mut ended = [condition::COMPLETE, condition::FAILED].into_iter().filter_map(|type_| backup.condition(type_));
    ended.find(|condition| condition.status == "True").map(|condition| condition.last_transition_time.0)
}
