//! A backup of what is there before a restore: it has one attempt, and none once the restore has begun.

use crds::names::{annotation, label};
use crds::{EtcdBackup, ObjectExt, Reason};

use super::observed::Observed;
use super::state::State;
use crate::etcd_restore::is_before_the_hold;

/// Whether a restore asked for it.
pub(super) fn is_before_restore(backup: &EtcdBackup) -> bool {
    backup.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(label::RESTORE))
}

/// What is not waited for where a restore is: it would be held up, and the cluster with it.
pub(super) fn unless_before_restore<'a>(backup: &EtcdBackup, reason: Reason, message: String) -> State<'a> {
    match is_before_restore(backup) {
        true => State::GivenUp(reason.into(), message),
        false => State::Waits(reason, message),
    }
}

/// Why it cannot begin any more: it would hold what the restore brought.
pub(super) fn too_late(observed: &Observed<'_>) -> Option<String> {
    let backup = observed.backup;
    let uid = backup.annotation(annotation::RESTORE_UID).filter(|_| is_before_restore(backup))?;
    let mut restores = observed.restores.unwrap_or_default().iter();
    let restore = restores.find(|restore| restore.uid() == uid)?;
    (!is_before_the_hold(restore)).then(|| format!("EtcdRestore {} has begun without it", restore.name()))
}
