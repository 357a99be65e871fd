//! The way back of a plane that is set back: to the volumes of before, which etcd left when it stopped. Until what
//! becomes of members is approved nothing has acted, and only administrators have written.

use crds::etcd_restore::RestorePhase;
use crds::karmada_deployment::{KarmadaRestoreStep as Step, KarmadaRestoredFrom};
use crds::{EtcdRestore, KarmadaDeployment, ObjectExt};

use super::super::etcd::pod_name;

/// Whether there is a way back from here.
pub(crate) fn is_possible(record: &KarmadaRestoredFrom) -> bool {
    record.step.is_some_and(|step| step <= Step::Compare)
        && !record.former_claims.is_empty()
        && record.undone_at.is_none()
}

/// The record by which the plane goes back, where its EtcdRestore says so by now: it stops, and starts with the volumes
/// of before.
pub(super) fn turned(
    object: &KarmadaDeployment,
    record: &KarmadaRestoredFrom,
    restores: &[&EtcdRestore],
) -> Option<KarmadaRestoredFrom> {
    let is_undone = |restore: &&&EtcdRestore| {
        let phase = restore.status.as_ref().and_then(|status| status.phase);
        record.restore_uid.as_deref() == Some(restore.uid()) && phase == Some(RestorePhase::Undoing)
    };
    restores.iter().find(is_undone).filter(|_| is_possible(record) && !is_turned(object, record))?;
    let claims = former(object, record)?.to_owned();
    let members = i32::try_from(record.former_claims.len()).ok();
    Some(KarmadaRestoredFrom { claims: Some(claims), etcd_members: members, step: Some(Step::Stop), ..record.clone() })
}

/// Whether it is on its way back.
pub(super) fn is_turned(object: &KarmadaDeployment, record: &KarmadaRestoredFrom) -> bool {
    record.claims.as_deref().is_some_and(|claims| former(object, record) == Some(claims))
}

/// What the names of the claims of before begin with.
fn former<'a>(object: &KarmadaDeployment, record: &'a KarmadaRestoredFrom) -> Option<&'a str> {
    record.former_claims.first()?.strip_suffix(&format!("-{}", pod_name(object, 0)))
}
