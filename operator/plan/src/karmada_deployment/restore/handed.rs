//! The EtcdRestore that sets a plane back: approved, and handed over by its own planner, until the plane has the
//! backup's data.

use crds::cluster_deployment::RestoreFrom;
use crds::karmada_deployment::KarmadaRestoredFrom;
use crds::{EtcdRestore, KarmadaDeployment, ObjectExt};

use super::super::restoring::record;

/// Whether it is handed over to its plane: approved, and not over.
pub fn is_handed_over(restore: &EtcdRestore) -> bool {
    let status = restore.status.as_ref();
    status.is_some_and(|status| status.began_at.is_some() && status.finished_at.is_none())
}

/// The EtcdRestore that the plane is to take over, out of those of its namespace; none: there is none, or it has.
pub fn handed_over<'a>(
    object: &KarmadaDeployment,
    restores: &[&'a EtcdRestore],
) -> Option<(&'a EtcdRestore, &'a KarmadaRestoredFrom)> {
    let taken = record(object).and_then(|record| record.restore_uid.as_deref());
    let is_it = |restore: &&&EtcdRestore| {
        restore.spec.is_for_plane(object.name()) && is_handed_over(restore) && taken != Some(restore.uid())
    };
    let restore = restores.iter().filter(is_it).min_by_key(|restore| (restore.created_at(), restore.name()))?;
    Some((restore, restore.status.as_ref()?.plane_backup.as_ref()?))
}

/// The backup of what the plane is at, and the identity that decrypts it; none: the EtcdRestore is gone.
pub fn source(object: &KarmadaDeployment, restores: &[&EtcdRestore]) -> Option<RestoreFrom> {
    match record(object).and_then(|record| record.restore_uid.as_deref()) {
        None => object.spec.restore_from.clone(),
        Some(uid) => restores.iter().find(|restore| restore.uid() == uid).map(|restore| restored_from(restore)),
    }
}

/// What an EtcdRestore names, as a new plane would.
pub fn restored_from(restore: &EtcdRestore) -> RestoreFrom {
    RestoreFrom { source: restore.spec.source.clone(), identity_ref: restore.spec.identity_ref.clone() }
}
