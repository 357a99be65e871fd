//! The way back of a plane that is set back: to the volumes of before, which etcd left when it stopped, or to the data
//! of before that lies on its machines. Until what becomes of members is approved nothing has acted, and only
//! administrators have written.

use crds::etcd_restore::RestorePhase;
use crds::karmada_deployment::{KarmadaRestoreStep as Step, KarmadaRestoredFrom};
use crds::{EtcdRestore, KarmadaDeployment, ObjectExt};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::super::etcd::pod_name;
use super::super::restoring::{is_in_place_on_machines, is_turned};

/// Whether there is a way back from here.
pub(crate) fn is_possible(record: &KarmadaRestoredFrom) -> bool {
    // On machines nothing of what was there before is lost; of a plane in Pods its volumes have to be known.
    let has_former = is_in_place_on_machines(record) || !record.former_claims.is_empty();
    record.step.is_some_and(|step| step <= Step::Compare) && has_former && record.undone_at.is_none()
}

/// The record by which the plane goes back, where its EtcdRestore says so by now: it stops, and starts with the data of
/// before. One that has not begun to stop need not.
pub(super) fn turned(
    object: &KarmadaDeployment,
    record: &KarmadaRestoredFrom,
    restores: &[&EtcdRestore],
    now: Timestamp,
) -> Option<KarmadaRestoredFrom> {
    let is_undone = |restore: &&&EtcdRestore| {
        let phase = restore.status.as_ref().and_then(|status| status.phase);
        record.restore_uid.as_deref() == Some(restore.uid()) && phase == Some(RestorePhase::Undoing)
    };
    restores.iter().find(is_undone).filter(|_| is_possible(record) && !is_turned(record))?;
    let turned = KarmadaRestoredFrom { undo_began_at: Some(Time(now)), ..record.clone() };
    if is_in_place_on_machines(record) {
        let step = record.step.map(|step| step.min(Step::Stop));
        return Some(KarmadaRestoredFrom { step, ..turned });
    }
    let claims = former(object, record)?.to_owned();
    let members = i32::try_from(record.former_claims.len()).ok();
    Some(KarmadaRestoredFrom { claims: Some(claims), etcd_members: members, step: Some(Step::Stop), ..turned })
}

/// What the names of the claims of before begin with.
fn former<'a>(object: &KarmadaDeployment, record: &'a KarmadaRestoredFrom) -> Option<&'a str> {
    record.former_claims.first()?.strip_suffix(&format!("-{}", pod_name(object, 0)))
}
