//! The status of a backup.

mod sentence;
mod verified;

use crds::conditions::{self, Statement};
use crds::etcd_backup::BackupPhase;
use crds::kstatus::Standing;
use crds::names::condition;
use crds::playbook_run::{RunPhase, end};
use crds::references::LocalRef;
use crds::{EtcdBackupStatus, ObjectExt, PlaybookRun, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observed::Observed;
use super::removal::{Removal, ask};
use super::state::State;
use crate::attempts::said;
use crate::message::cut;
use crate::moment::clock;
use crate::size::size;
use sentence::sentence;
pub(super) use verified::verifying;

/// The status in this state.
pub(super) fn status(observed: &Observed<'_>, state: &State<'_>) -> EtcdBackupStatus {
    let old = observed.backup.status.clone().unwrap_or_default();
    let told = Told::new(state);
    let message = cut(told.message);
    let (is_taken, is_over) = (told.phase == BackupPhase::Succeeded, told.phase == BackupPhase::Failed);
    let mut conditions = old.conditions;
    // As a run's that ended so.
    let mut statements = match told.phase {
        BackupPhase::Succeeded => end(RunPhase::Succeeded, &told.reason, &message),
        BackupPhase::Failed => end(RunPhase::Failed, &told.reason, &message),
        BackupPhase::Pending | BackupPhase::Running => {
            vec![Statement::new(condition::COMPLETE, false, told.reason, message.clone())]
        }
    };
    if let Some(why) = statements.first().cloned() {
        Standing::new(is_taken, is_over).report(&why, &mut conditions, &mut statements);
    }
    statements.extend((is_taken && observed.backup.spec.verify.is_some()).then(verified::pending));
    let generation = observed.backup.metadata.generation;
    EtcdBackupStatus {
        observed_generation: generation,
        phase: Some(told.phase),
        message: Some(message),
        run_ref: told.run.map(|run| LocalRef::new(run.name())).or(old.run_ref),
        progress: told.run.and_then(bytes).filter(|_| told.phase == BackupPhase::Running),
        backup: match state {
            State::Taken(_, content) => Some((*content).clone()),
            State::Waits(..) | State::Begins(_) | State::Runs(_) | State::Retries(..) | State::GivenUp(..) => None,
        },
        removal_tried_at: old.removal_tried_at,
        verified: old.verified,
        damaged: old.damaged,
        verification_tried_at: old.verification_tried_at,
        verification_failures: old.verification_failures,
        conditions: conditions::state(&conditions, &statements, generation, &Time(observed.now)),
    }
}

/// The status of one that is being deleted.
pub(super) fn leaving(observed: &Observed<'_>, removal: &Removal<'_>) -> EtcdBackupStatus {
    let old = observed.backup.status.clone().unwrap_or_default();
    let (reason, message) = match removal {
        // What was said of the last attempt holds until the next.
        Removal::Retries => return old,
        Removal::Done => (Reason::RemovingBackup, "nothing of it is in the storage: it goes".to_owned()),
        Removal::Stops(run) => (Reason::RemovingBackup, format!("run {} is stopped first", run.name())),
        Removal::Waits(reason, message) => (*reason, message.clone()),
        Removal::Begins(job) => (Reason::RemovingBackup, format!("Job {} begins", job.name())),
        Removal::UnderWay(message) => (Reason::RemovingBackup, message.clone()),
        Removal::Failed(why) | Removal::Stuck(why) => (Reason::BackupNotRemoved, ask(observed, why)),
    };
    let message = cut(message);
    let deleting = Statement::new(condition::DELETING, true, reason, message.clone());
    let (mut conditions, mut statements) = (old.conditions, vec![deleting.clone()]);
    let is_stuck = matches!(removal, Removal::Stuck(_));
    Standing::new(false, is_stuck).report(&deleting, &mut conditions, &mut statements);
    let (generation, now) = (observed.backup.metadata.generation, Time(observed.now));
    EtcdBackupStatus {
        observed_generation: generation,
        message: Some(message),
        removal_tried_at: match removal {
            Removal::Failed(_) => Some(now.clone()),
            _ => old.removal_tried_at,
        },
        conditions: conditions::state(&conditions, &statements, generation, &now),
        ..old
    }
}

/// What is said of a state.
struct Told<'a> {
    phase: BackupPhase,
    reason: String,
    message: String,
    run: Option<&'a PlaybookRun>,
}

impl<'a> Told<'a> {
    fn new(state: &'a State<'a>) -> Self {
        let told =
            |phase, reason: &dyn ToString, message, run| Self { phase, reason: reason.to_string(), message, run };
        match state {
            State::Waits(reason, message) => told(BackupPhase::Pending, reason, message.clone(), None),
            State::Begins(run) => {
                let message = format!("run {} begins", run.name());
                told(BackupPhase::Pending, &Reason::BackingUp, message, Some(run))
            }
            State::Runs(run) => told(BackupPhase::Running, &Reason::BackingUp, doing(run), Some(run)),
            State::Retries(run, at) => {
                let message = format!("run {} failed: {}; tried again at {}", run.name(), said(run), clock(*at));
                told(BackupPhase::Pending, &Reason::BackingUp, message, Some(run))
            }
            State::Taken(run, content) => {
                let message = sentence(content);
                told(BackupPhase::Succeeded, &Reason::BackedUp, message, Some(run))
            }
            State::GivenUp(reason, message) => told(BackupPhase::Failed, reason, message.clone(), None),
        }
    }
}

/// What a run does at this moment.
fn doing(run: &PlaybookRun) -> String {
    match bytes(run) {
        Some(bytes) => format!("run {}: {} stored", run.name(), size(bytes)),
        None => format!("run {}: {}", run.name(), said(run)),
    }
}

fn bytes(run: &PlaybookRun) -> Option<i64> {
    run.status.as_ref()?.progress.as_ref()?.bytes
}
