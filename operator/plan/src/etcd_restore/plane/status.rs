//! The status of a restore of a plane.

use crds::etcd_restore::{RestorePhase, StagedBackup};
use crds::karmada_deployment::KarmadaRestoredFrom;
use crds::references::LocalRef;
use crds::{EtcdRestoreStatus, ObjectExt, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::super::observed::Observed;
use super::super::safety::{Safety, safety};
use super::super::status::{conditions, way_back};
use super::state::State;
use crate::karmada_deployment::is_in_place_on_machines;
use crate::message::cut;
use crate::moment::day_and_clock;

/// The status in this state.
pub(super) fn status(observed: &Observed<'_>, state: &State<'_>) -> EtcdRestoreStatus {
    let old = observed.restore.status.clone().unwrap_or_default();
    let now = || Time(observed.now);
    let (phase, reason, message) = said(observed, state);
    let message = cut(message);
    let record = match state {
        State::Asks(_, record) | State::HandsOver(record) => Some((**record).clone()),
        _ => None,
    };
    let hands_over = matches!(state, State::HandsOver(_));
    let waits_for_a_person = reason == Reason::WaitingForApproval.as_str();
    let conditions = conditions(observed, &phase, (reason, &message), waits_for_a_person);
    EtcdRestoreStatus {
        observed_generation: observed.restore.metadata.generation,
        phase: Some(phase),
        message: Some(message),
        run_ref: None,
        staged: staged(observed).or(old.staged),
        plane_backup: record.or(old.plane_backup),
        safety_backup: old.safety_backup.or_else(|| taken_before(observed).filter(|_| hands_over)),
        began_at: old.began_at.or(hands_over.then(now)),
        finished_at: old.finished_at.or(state.is_end().then(now)),
        old_data_removed_at: old.old_data_removed_at,
        conditions,
    }
}

/// What lies ready on the machines of the plane.
fn staged(observed: &Observed<'_>) -> Option<StagedBackup> {
    let record = observed.plane?.status.as_ref()?.restored_from.as_ref()?;
    record.staged.clone().filter(|_| record.restore_uid.as_deref() == Some(observed.restore.uid()))
}

/// The backup of what was there.
fn taken_before(observed: &Observed<'_>) -> Option<LocalRef> {
    match safety(observed) {
        Safety::Taken(backup) => Some(LocalRef::new(backup.name())),
        Safety::Begins(_) | Safety::UnderWay(_) | Safety::Missing(_) => None,
    }
}

fn said(observed: &Observed<'_>, state: &State<'_>) -> (RestorePhase, String, String) {
    let said = |phase, reason: Reason, message: &str| (phase, reason.to_string(), message.to_owned());
    match state {
        State::Waits(reason, message) => said(RestorePhase::Pending, *reason, message),
        State::Fetches(reason, message, _) => said(RestorePhase::Staging, *reason, message),
        State::Asks(message, _) => said(RestorePhase::AwaitingApproval, Reason::WaitingForApproval, message),
        State::BacksUp(_, message) => said(RestorePhase::BackingUp, Reason::BackingUp, message),
        State::HandsOver(_) => {
            let name = observed.plane.map(ObjectExt::name).unwrap_or_default();
            said(RestorePhase::Restoring, Reason::Restoring, &format!("KarmadaDeployment {name} is about to stop"))
        }
        State::Taken(taken) => said(taken.phase, taken.reason, &taken.message),
        State::Restored(record) => said(RestorePhase::Succeeded, Reason::Restored, &restored(observed, record)),
        State::Undone(record) => said(RestorePhase::Undone, Reason::RestoreUndone, &undone(observed, record)),
        State::GivenUp(reason, message) => (RestorePhase::Failed, reason.clone(), message.clone()),
    }
}

/// What the plane has again, and what is left of the backup.
fn undone(observed: &Observed<'_>, record: &KarmadaRestoredFrom) -> String {
    let plane = observed.restore.spec.subject();
    let unused = observed.restore.status.as_ref().and_then(|status| status.plane_backup.as_ref()?.claims.clone());
    let left = unused.map(|claims| {
        format!(
            ": PersistentVolumeClaims {claims}-* of the host have what was made of backup {}: delete them",
            record.backup
        )
    });
    let kept = is_in_place_on_machines(record)
        .then(|| format!("; what was made of backup {} stays on the machines for {}", record.backup, kept(observed)));
    format!("{plane} starts with the data that it had before{}", left.or(kept).unwrap_or_default())
}

/// What the plane has now, and what is left to be done by a person.
fn restored(observed: &Observed<'_>, record: &KarmadaRestoredFrom) -> String {
    let at = day_and_clock(record.taken_at.0);
    let before = match record.former_claims.as_slice() {
        [] if is_in_place_on_machines(record) => {
            format!("; the data of before stays on the machines for {}", kept(observed))
        }
        [] => String::new(),
        claims => format!(
            "; PersistentVolumeClaims {} of the host have etcd's data of before: delete them once nobody needs it",
            claims.join(", ")
        ),
    };
    let safety = observed.restore.status.as_ref().and_then(|status| status.safety_backup.clone());
    let back = way_back(observed, safety);
    format!("restored to backup {} of {at}, revision {}{before}{back}", record.backup, record.revision)
}

/// How long what is left stays on machines.
fn kept(observed: &Observed<'_>) -> String {
    format!("{} s", observed.restore.spec.keep_old_data_seconds)
}
