//! The backup that precedes what cannot be taken back: it is the only way back. One of the last hour does; else it is
//! made as a schedule makes its own.

use crds::etcd_backup::BackupPhase;
use crds::names::condition;
use crds::{Conditions, EtcdBackup, ObjectExt};
use jiff::{SignedDuration, Timestamp};

use crate::message::quote;
use crate::moment::{after, clock};

/// How old it may be when the first thing is touched.
const RECENT: SignedDuration = SignedDuration::from_hours(1);
/// After one that failed the next is made so much later. Whoever decides twice meanwhile makes the same.
const EVERY_SECONDS: i64 = 600;

/// How it stands with it.
#[derive(Debug, PartialEq)]
pub(crate) enum RecentBackup {
    /// It is there, and good; verified, if that was asked for.
    There,
    /// It is made, or verified: what is waited for.
    UnderWay(String),
    /// It is to be made.
    Wanted(Box<EtcdBackup>),
    /// It is no good, and why; the next one is made at that time.
    Failed(String, Timestamp),
}

/// How it stands, among the backups of what is to be changed. `make` makes the one for a moment.
pub(crate) fn recent_backup(
    now: Timestamp,
    ours: &[&EtcdBackup],
    make: impl FnOnce(Timestamp) -> EtcdBackup,
) -> RecentBackup {
    if ours.iter().any(|backup| is_recent(now, backup)) {
        return RecentBackup::There;
    }
    if let Some(backup) = ours.iter().find(|backup| goes_on(backup)) {
        return RecentBackup::UnderWay(format!("waits for EtcdBackup {}{}", backup.name(), said(backup)));
    }
    let moment = moment(now);
    let wanted = make(moment);
    match ours.iter().find(|backup| backup.name() == wanted.name()) {
        Some(failed) => {
            let next = after(moment, SignedDuration::from_secs(EVERY_SECONDS));
            let why = format!(
                "no backup of the last hour: EtcdBackup {} is no good{}; the next one is made at {}; see to its storage",
                failed.name(),
                said(failed),
                clock(next)
            );
            RecentBackup::Failed(why, next)
        }
        None => RecentBackup::Wanted(Box::new(wanted)),
    }
}

/// Whether it is good, verified if that was asked for, and so young that little would be lost.
fn is_recent(now: Timestamp, backup: &EtcdBackup) -> bool {
    let completed = backup.good().map(|content| content.completed_at.0);
    completed.is_some_and(|completed| after(completed, RECENT) >= now) && !backup.is_to_be_verified()
}

/// Whether it is being made, or verified.
fn goes_on(backup: &EtcdBackup) -> bool {
    let phase = backup.status.as_ref().and_then(|status| status.phase).unwrap_or(BackupPhase::Pending);
    match phase {
        BackupPhase::Pending | BackupPhase::Running => true,
        BackupPhase::Succeeded => backup.is_to_be_verified(),
        BackupPhase::Failed => false,
    }
}

/// What it says of itself, for the end of a sentence.
fn said(backup: &EtcdBackup) -> String {
    let verified = backup.condition(condition::VERIFIED).filter(|verified| verified.status != "True");
    let stored = || backup.status.as_ref()?.message.clone();
    let told = verified.map(|verified| verified.message.clone()).or_else(stored);
    told.map(|message| format!(" ({})", quote(message))).unwrap_or_default()
}

/// The same for some time.
fn moment(now: Timestamp) -> Timestamp {
    let second = now.as_second();
    Timestamp::from_second(second - second.rem_euclid(EVERY_SECONDS)).unwrap_or(now)
}
