//! The status of a storage.

use bytesize::ByteSize;
use crds::backup::StorageLook;
use crds::conditions::{self, Statement};
use crds::kstatus::Standing;
use crds::names::condition;
use crds::{BackupStorageStatus, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::look::Look;
use super::observed::Observed;
use crate::message::{count, cut};

/// Whether it could be used when it was last asked.
pub(super) fn is_reachable(status: &BackupStorageStatus) -> bool {
    conditions::is_true(&status.conditions, condition::REACHABLE)
}

/// The status after a look.
pub(super) fn after(observed: &Observed<'_>, look: &Look) -> BackupStorageStatus {
    let old = observed.storage.status.clone().unwrap_or_default();
    let (status, reachable) = match look {
        // What was found before holds until somebody has looked again.
        Look::UnderWay(_)
            if old.observed_generation == observed.storage.metadata.generation && old.probed_at.is_some() =>
        {
            return old;
        }
        Look::UnderWay(trouble) => {
            let waits = trouble.as_ref().map(|trouble| format!(": {trouble}")).unwrap_or_default();
            let message = cut(format!("is being probed{waits}"));
            // Not of this generation before somebody has looked.
            let status = BackupStorageStatus { message: Some(message.clone()), ..old };
            return stated(
                observed,
                status,
                Statement::new(condition::REACHABLE, None, Reason::StorageNotProbed, message),
            );
        }
        Look::Unusable(reason, message) => {
            (old, Statement::new(condition::REACHABLE, false, reason.clone(), cut(message.clone())))
        }
        Look::Found(found) if found.reachable => {
            let statement = Statement::new(condition::REACHABLE, true, Reason::StorageAnswers, cut(summary(found)));
            (kept(old, found), statement)
        }
        Look::Found(found) => {
            let reason = found.reason.clone().unwrap_or_else(|| Reason::StorageFailed.into());
            let message = found.message.clone().unwrap_or_else(|| "it cannot be used, and did not say why".into());
            (old, Statement::new(condition::REACHABLE, false, reason, cut(message)))
        }
    };
    let status = BackupStorageStatus {
        observed_generation: observed.storage.metadata.generation,
        probed_at: Some(Time(observed.now)),
        message: Some(reachable.message.clone()),
        ..status
    };
    stated(observed, status, reachable)
}

fn kept(old: BackupStorageStatus, found: &StorageLook) -> BackupStorageStatus {
    BackupStorageStatus {
        backups: found.backups.map(stored),
        size: found.size.map(stored),
        free: found.free.map(stored),
        newest: found.newest.clone(),
        ..old
    }
}

/// As a status has numbers.
fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn stated(observed: &Observed<'_>, mut status: BackupStorageStatus, reachable: Statement) -> BackupStorageStatus {
    let standing = Standing::new(reachable.status == Some(true), reachable.status == Some(false));
    let mut statements = vec![reachable.clone()];
    standing.report(&reachable, &mut status.conditions, &mut statements);
    let generation = observed.storage.metadata.generation;
    status.conditions = conditions::state(&status.conditions, &statements, generation, &Time(observed.now));
    status
}

/// `3 backups, 12.1 MiB; 40.2 GiB free`.
fn summary(found: &StorageLook) -> String {
    let bytes = |bytes: u64| ByteSize::b(bytes).display().iec().to_string();
    let backups = usize::try_from(found.backups.unwrap_or_default()).unwrap_or_default();
    let size = found.size.filter(|_| backups > 0).map(|size| format!(", {}", bytes(size))).unwrap_or_default();
    let free = found.free.map(|free| format!("; {} free", bytes(free))).unwrap_or_default();
    format!("{}{size}{free}", count(backups, "backup"))
}
