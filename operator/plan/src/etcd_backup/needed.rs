//! Whether a backup is needed yet.

use crds::{EtcdBackup, EtcdRestore, ObjectExt};

use crate::etcd_restore::is_over;

/// The restore that has not ended and is of this backup: by its name, or by its place in the storage.
pub fn needed_by<'a>(backup: &EtcdBackup, restores: &[&'a EtcdRestore]) -> Option<&'a EtcdRestore> {
    let content = backup.status.as_ref().and_then(|status| status.backup.as_ref());
    let is_of = |restore: &&EtcdRestore| {
        let source = &restore.spec.source;
        let by_name = source.backup_ref.as_ref().is_some_and(|reference| reference.name == backup.name());
        let by_place = source.stored.as_ref().zip(content).is_some_and(|(stored, content)| {
            stored.storage_ref == backup.spec.storage_ref && stored.location == content.location
        });
        by_name || by_place
    };
    restores.iter().copied().filter(|restore| !is_over(restore)).find(is_of)
}
