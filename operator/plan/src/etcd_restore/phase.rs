//! What a restore that is somewhere keeps others from.

use crds::etcd_restore::RestorePhase;
use crds::{EtcdRestore, PlaybookRun};

use super::names::safety_name;

/// Whether nothing more comes of it, but that what it left is removed.
pub fn is_over(restore: &EtcdRestore) -> bool {
    phase(restore).and_then(RestorePhase::end).is_some()
}

/// Whether the cluster's control plane may be stopped for it: nothing else is done with its machines meanwhile.
pub fn holds_the_cluster(restore: &EtcdRestore) -> bool {
    phase(restore).is_some_and(RestorePhase::holds_the_cluster)
}

/// Whether nothing else begins in the cluster: the control plane may be stopped for it, or soon is.
pub fn keeps_others_out(restore: &EtcdRestore) -> bool {
    holds_the_cluster(restore) || phase(restore) == Some(RestorePhase::BackingUp)
}

/// Whether a run that takes a backup may begin beside this restore: of what is there, before the control plane is
/// stopped, the restore's own alone.
pub fn lets_backup_begin(restore: &EtcdRestore, run: &PlaybookRun) -> bool {
    let own = run.spec.backup_ref.as_ref().is_some_and(|backup| backup.name == safety_name(restore));
    !keeps_others_out(restore) || own && !holds_the_cluster(restore)
}

/// Whether nothing of the cluster has been stopped for it yet.
pub fn is_before_the_hold(restore: &EtcdRestore) -> bool {
    phase(restore).is_none_or(RestorePhase::is_before_the_hold)
}

fn phase(restore: &EtcdRestore) -> Option<RestorePhase> {
    restore.status.as_ref().and_then(|status| status.phase)
}
