//! Which backups of a cluster are verified, and how the last verification ended.

use crds::etcd_backup::{Verify, VerifyMethod};
use crds::etcd_backup_schedule::LastVerified;
use crds::names::condition;
use crds::{Conditions, EtcdBackup, ObjectExt, Reason};
use jiff::{SignedDuration, Timestamp};

use super::backup::{is_damaged, scheduled_at};
use super::cluster::Cluster;
use super::observed::Observed;
use super::problem_kind::Problem;
use crate::message::quote;
use crate::moment::after;

/// How the backup of a cluster that begins now is verified: if none was so for long enough, and none is about to be.
pub(super) fn wanted(observed: &Observed<'_>, cluster: &Cluster<'_>) -> Option<Verify> {
    let verify = observed.schedule.spec.verify.as_ref()?;
    let every = SignedDuration::from_secs(verify.every().into());
    let is_recent = |at: Timestamp| after(at, every) > observed.now;
    let suffices = |how: VerifyMethod| how >= verify.how;
    let was = last(observed, cluster).is_some_and(|last| suffices(last.how) && is_recent(last.at.0));
    let is_about_to_be = cluster.backups.iter().any(|backup| {
        let asks = backup.spec.verify.as_ref().is_some_and(|asked| suffices(asked.how));
        asks && backup.is_to_be_verified() && is_recent(scheduled_at(backup))
    });
    let is_doubted = last_ended(cluster).is_some_and(is_damaged);
    (is_doubted || !(was || is_about_to_be)).then(|| verify.of_backup())
}

/// The backup that was verified last, by those that are there and by what the status remembers of those that are not.
pub(super) fn last(observed: &Observed<'_>, cluster: &Cluster<'_>) -> Option<LastVerified> {
    let status = observed.schedule.status.as_ref();
    let mut known = status.into_iter().flat_map(|status| &status.clusters);
    let remembered = known.find(|known| known.name == cluster.target.name());
    let remembered = remembered.and_then(|known| known.last_verified.clone());
    let there = cluster.backups.iter().filter_map(|backup| {
        let verified = backup.status.as_ref()?.verified.as_ref()?;
        Some(LastVerified { name: backup.name().to_owned(), at: verified.at.clone(), how: verified.how })
    });
    there.chain(remembered).max_by_key(|verified| verified.at.0)
}

/// What is wrong with the last verification: what it found, or why it is not made.
pub(super) fn problem(cluster: &Cluster<'_>) -> Option<Problem> {
    let target = cluster.target.said();
    let said = |backup: &EtcdBackup| {
        let verified = backup.condition(condition::VERIFIED);
        let said = verified.map(|verified| quote(verified.message.clone())).unwrap_or_default();
        format!("EtcdBackup {} of {target}: {said}", backup.name())
    };
    if let Some(backup) = last_ended(cluster).filter(|backup| is_damaged(backup)) {
        let message = format!("what was verified last is not what was stored: {}", said(backup));
        return Some(Problem { reason: Reason::LastVerificationFailed, message });
    }
    let is_tried_in_vain = |backup: &&EtcdBackup| {
        let failures = backup.status.as_ref().and_then(|status| status.verification_failures);
        backup.is_to_be_verified() && failures.is_some_and(|failures| failures > 0)
    };
    let backup = cluster.backups.iter().copied().rev().find(is_tried_in_vain)?;
    Some(Problem { reason: Reason::VerificationNotMade, message: format!("not verified: {}", said(backup)) })
}

/// The backup whose verification came to an end last, well or not.
fn last_ended<'a>(cluster: &Cluster<'a>) -> Option<&'a EtcdBackup> {
    let ended = |backup: &&EtcdBackup| {
        let status = backup.status.as_ref()?;
        let ended = status.verified.as_ref().or(status.damaged.as_ref())?;
        Some(ended.at.0)
    };
    cluster.backups.iter().copied().filter(|backup| ended(backup).is_some()).max_by_key(ended)
}
