//! What a plane says of the restore that it has taken over.

use crds::etcd_restore::RestorePhase;
use crds::karmada_deployment::KarmadaRestoreStep as Step;
use crds::names::condition;
use crds::{Conditions, EtcdRestore, KarmadaDeployment, ObjectExt, Reason};

use super::approval::{ask_to_undo, undo_is_given};
use super::state::{State, Taken};
use crate::karmada_deployment::restore::undo::is_possible;
use crate::message::{cut, cut_before};

/// How the restore stands.
pub(super) fn state<'a>(restore: &EtcdRestore, plane: &'a KarmadaDeployment) -> State<'a> {
    let name = plane.name();
    let record = plane.status.as_ref().and_then(|status| status.restored_from.as_ref());
    let record = record.filter(|record| record.restore_uid.as_deref() == Some(restore.uid()));
    let taken = |phase, reason, message: String| State::Taken(Taken { phase, reason, message });
    let Some(record) = record else {
        return match plane.spec.paused {
            true => {
                let message = format!("KarmadaDeployment {name} is paused: it goes on once its spec.paused is false");
                taken(RestorePhase::Restoring, Reason::Paused, message)
            }
            false => {
                let message = format!("KarmadaDeployment {name} is about to stop");
                taken(RestorePhase::Restoring, Reason::Restoring, message)
            }
        };
    };
    let phase = match record.step {
        None if record.undone_at.is_some() => return State::Undone(record),
        None => return State::Restored(record),
        Some(Step::Stage | Step::Stop | Step::Data | Step::Serve | Step::Compare) => RestorePhase::Restoring,
        Some(Step::Release | Step::Collect) => RestorePhase::Restarting,
    };
    let said = plane.status.as_ref().and_then(|status| status.message.clone()).unwrap_or_default();
    let asks =
        plane.condition(condition::READY).is_some_and(|ready| ready.reason == Reason::WaitingForApproval.as_str());
    let reason = match plane.spec.paused {
        true => Reason::Paused,
        false if asks && record.step == Some(Step::Compare) => Reason::WaitingForApproval,
        false => Reason::Restoring,
    };
    let said = format!("KarmadaDeployment {name}: {said}");
    if !is_possible(record) {
        return taken(phase, reason, cut(said));
    }
    match undo_is_given(restore, plane, record) {
        true => taken(RestorePhase::Undoing, Reason::UndoingRestore, cut(said)),
        false => {
            let command = ask_to_undo(restore, plane, record);
            let back = format!("; to go back to the data of before: {command}");
            taken(phase, reason, cut_before(said, &back))
        }
    }
}
