//! A restore of a Karmada control plane in its place. While the plane works on, the keys of the backup are fetched,
//! which shows that it decrypts, and it is compared with the plane; a person approves, and what is there is backed up.
//! Then it is handed over: the plane takes the record over into its status, stops, and does what one does that begins
//! with a backup. From then on this says what the plane says.

mod approval;
mod blocker;
mod state;
mod status;
mod taken;

use crds::karmada_deployment::KarmadaRestoredFrom;
use crds::names::finalizer;
use crds::{EtcdRestore, EtcdRestoreStatus, KarmadaDeployment, ObjectExt, Reason};

use super::action::Action;
use super::leftovers;
use super::observed::Observed;
use super::phase::is_over;
use super::safety::backing_up;
use crate::karmada_deployment::restore::{differences, is_handed_over, restored_from, settled_in_place};
use crate::key_progress::{KeyProgress, key_progress};
use crate::key_transfer::{KeysSeen, Receiver};
use crate::message::quote;
use crate::{Next, Plan};
use state::State;

/// How often it is looked at what nobody tells, in seconds.
const LOOK_AGAIN_SECONDS: u64 = 15;
/// How often it is looked how far a Job is, in seconds.
const FETCHING_SECONDS: u64 = 5;

/// Whether the keys of the backup are looked at: it is of a plane that has not taken it over yet.
pub fn needs_keys(restore: &EtcdRestore) -> bool {
    restore.spec.karmada_deployment_ref.is_some() && !is_over(restore) && !is_handed_over(restore)
}

/// Decides, of a restore of the plane of this name.
pub(super) fn plan(observed: &Observed<'_>, name: &str) -> Plan<Action, EtcdRestoreStatus> {
    let restore = observed.restore;
    if is_over(restore) {
        let status = restore.status.clone().unwrap_or_default();
        let mut plan = Plan { actions: Vec::new(), status, next: Next::OnChange, waits_for: None };
        leftovers::of_plane(observed, &plan.status).add_to(&mut plan, restore.is_deleting());
        return plan;
    }
    let state = state(observed, name);
    let status = status::status(observed, &state);
    let waits_for = status.message.clone().filter(|_| !state.is_end());
    let next = match &state {
        State::Waits(Reason::WaitingForBackup, _) => Next::after_seconds(LOOK_AGAIN_SECONDS),
        State::Fetches(..) => Next::after_seconds(FETCHING_SECONDS),
        _ if state.is_end() && restore.is_deleting() => Next::after_seconds(1),
        _ => Next::OnChange,
    };
    Plan { actions: actions(observed, state), status, next, waits_for }
}

fn actions(observed: &Observed<'_>, state: State<'_>) -> Vec<Action> {
    let is_held = observed.restore.has_finalizer(finalizer::RESTORE);
    match state {
        // It is held before anything is made for it.
        State::Fetches(_, _, actions) if actions.is_empty() || is_held => actions,
        State::Fetches(..) => vec![Action::AddFinalizer],
        State::BacksUp(backup, _) => backup.map(Action::BackUp).into_iter().collect(),
        State::HandsOver(_) if !is_held && !observed.restore.is_deleting() => vec![Action::AddFinalizer],
        // What was fetched for another one is not touched.
        State::GivenUp(..) if is_held => left(observed),
        State::Waits(..)
        | State::Asks(..)
        | State::HandsOver(_)
        | State::Taken(_)
        | State::Undone(_)
        | State::Restored(_)
        | State::GivenUp(..) => Vec::new(),
    }
}

/// What fetched the keys.
fn left(observed: &Observed<'_>) -> Vec<Action> {
    let is_left = observed.keys.keys != KeysSeen::Absent || !observed.keys.jobs.is_empty();
    is_left.then_some(Action::DropKeyTransfer).into_iter().collect()
}

fn state<'a>(observed: &Observed<'a>, name: &str) -> State<'a> {
    let (restore, is_taken) = (observed.restore, is_handed_over(observed.restore));
    let Some(plane) = observed.plane.filter(|plane| !plane.is_deleting()) else {
        let gone = observed.plane.map_or("is not there", |_| "is being deleted");
        let message = format!("KarmadaDeployment {name} {gone}");
        return match observed.plane {
            None if !is_taken && !restore.is_deleting() => State::Waits(
                Reason::KarmadaDeploymentNotFound,
                format!("{message}: make it, or delete this EtcdRestore"),
            ),
            _ => State::GivenUp(Reason::ClusterDeleting.into(), message),
        };
    };
    if is_taken {
        return taken::state(restore, plane);
    }
    if restore.is_deleting() {
        return State::GivenUp(Reason::Deleting.into(), "deleted before it was approved".into());
    }
    if let Some(blocked) = blocker::blocker(observed, plane) {
        return blocked;
    }
    match restore.status.as_ref().and_then(|status| status.plane_backup.clone()) {
        Some(record) => checked(observed, plane, record),
        None => keys(observed, plane, None),
    }
}

/// What is found of the backup with its keys. `approved`: the record, where that was found before.
fn keys<'a>(observed: &Observed<'a>, plane: &KarmadaDeployment, approved: Option<KarmadaRestoredFrom>) -> State<'a> {
    let from = restored_from(observed.restore);
    let fetches = |message: String, actions: Vec<Action>| State::Fetches(Reason::FetchingKeys, message, actions);
    match key_progress(&Receiver::plane_in_place(plane, &from), observed.keys, observed.now) {
        KeyProgress::Waits(message) => State::Waits(Reason::WaitingForBackup, message),
        KeyProgress::Begin(transfer, message) => fetches(message, vec![Action::FetchKeys(transfer)]),
        KeyProgress::Fetching(message) => fetches(message, Vec::new()),
        KeyProgress::Failed(message, at) => {
            let again = (at <= observed.now).then_some(Action::DropKeyTransfer).into_iter().collect();
            State::Fetches(Reason::KeysNotFetched, message, again)
        }
        KeyProgress::Take(_) => {
            let message =
                format!("the Secret with the keys of KarmadaDeployment {} is not there: see it", plane.name());
            State::Waits(Reason::PKIMissing, message)
        }
        KeyProgress::Differ(message) => State::GivenUp(Reason::KeysDiffer.into(), message),
        KeyProgress::InPlace(..) if approved.is_some() => {
            let message = "the BackupStorage cannot be used, or the key of the snapshot is missing".to_owned();
            State::Waits(Reason::WaitingForBackup, message)
        }
        KeyProgress::InPlace(fetched, storage) => match settled_in_place(plane, &fetched, storage, observed.restore) {
            Some(record) => checked(observed, plane, record),
            None => {
                let message = format!("the backup at {} is of no plane: name one of a plane", quote(fetched.location));
                State::GivenUp(Reason::BackupOfOtherCluster.into(), message)
            }
        },
    }
}

/// All is known of the backup: it is handed over once that is approved, and what is there was backed up.
fn checked<'a>(observed: &Observed<'a>, plane: &KarmadaDeployment, record: KarmadaRestoredFrom) -> State<'a> {
    if let Some(differences) = differences(plane, &record) {
        let message = format!(
            "it does not fit KarmadaDeployment {}: {differences}; set it so, and make a new EtcdRestore",
            plane.name()
        );
        return State::GivenUp(Reason::BackupDoesNotFit.into(), message);
    }
    if !approval::is_given(observed, plane, &record) {
        return State::Asks(approval::message(observed, plane, &record), Box::new(record));
    }
    if let Some((backup, message)) = backing_up(observed) {
        return State::BacksUp(backup, message);
    }
    // The plane does not stop before the key of the snapshot is there again.
    match observed.keys.keys == KeysSeen::InPlace && observed.keys.snapshot_key.is_some() {
        true => State::HandsOver(Box::new(record)),
        false => keys(observed, plane, Some(record)),
    }
}
