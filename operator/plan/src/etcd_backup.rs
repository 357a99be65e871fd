//! EtcdBackup: asks for the run that takes the backup, again if that fails, and shows what came out; has what is stored
//! verified, and removes it when the EtcdBackup is deleted, if that is wished.

mod before;
mod expiry;
mod needed;
mod observed;
mod removal;
mod run;
mod source;
mod state;
mod status;
mod verification;

use crds::etcd_backup::BackupDeletionPolicy;
use crds::names::finalizer;
use crds::{EtcdBackup, EtcdBackupStatus, ObjectExt, PlaybookRun, Reason};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;

use crate::attempts::{self, Attempt};
use crate::backup_storage::usable;
use crate::owned_run::unclaimed;
use crate::{Next, Plan};
use expiry::{Expiry, expiry};
pub use needed::needed_by;
pub use observed::Observed;
use removal::{Removal, removal};
use source::source;
use state::State;
pub use verification::is_verified_now;
use verification::{Verification, verification};

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Hold the object until what it has stored is removed.
    AddFinalizer,
    /// Create this run, unless it is there already.
    Begin(Box<PlaybookRun>),
    /// Stop this run, which takes a backup that is being deleted.
    CancelRun(Box<PlaybookRun>),
    /// Create this Job, unless it is there already: it verifies what is stored.
    Verify(Box<Job>),
    /// Create this Job, unless it is there already: it removes what is stored.
    Remove(Box<Job>),
    /// Delete a Job that has done so, or has tried.
    Forget(Box<Job>),
    /// Let the object go.
    RemoveFinalizer,
    /// Delete the backup: it has been there for its `ttlSeconds`.
    Expire,
}

/// What a removal that goes on is looked at for: Jobs and Pods are not watched.
const LOOK_SECONDS: u64 = 2;
/// The same for a verification, which reads all that is stored.
const LOOK_AT_VERIFICATION_SECONDS: u64 = 5;
/// The same for what may change unseen: a Secret, a restore that ends, a certificate that is renewed.
const LOOK_AGAIN_SECONDS: u64 = 30;

/// Whether nothing more comes of it.
pub fn is_over(backup: &EtcdBackup) -> bool {
    use crds::etcd_backup::BackupPhase::{Failed, Pending, Running, Succeeded};
    match backup.status.as_ref().and_then(|status| status.phase) {
        Some(Succeeded | Failed) => true,
        Some(Pending | Running) | None => false,
    }
}

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Action, EtcdBackupStatus> {
    if observed.backup.is_deleting() {
        let status = observed.backup.status.clone().unwrap_or_default();
        return match is_held(observed.backup) {
            true => leaves(observed),
            false => Plan { actions: Vec::new(), status, next: Next::OnChange, waits_for: None },
        };
    }
    let mut plan = match is_over(observed.backup) {
        true => stays(observed),
        false => goes_on(observed),
    };
    if is_to_be_held(observed, &plan.actions) {
        plan.actions.insert(0, Action::AddFinalizer);
    }
    plan
}

/// Whether something of it may be in the storage that is removed before it goes, and nothing holds it: it begins now,
/// or somebody took the finalizer off.
fn is_to_be_held(observed: &Observed<'_>, actions: &[Action]) -> bool {
    let backup = observed.backup;
    let is_stored = backup.status.as_ref().is_some_and(|status| status.backup.is_some());
    let begins = || actions.iter().any(|action| matches!(action, Action::Begin(_)));
    let is_wished = backup.spec.deletion_policy == BackupDeletionPolicy::Delete;
    is_wished && !is_held(backup) && (is_stored || begins() || !run::attempts(observed).is_empty())
}

/// What is done about one that is being taken.
fn goes_on(observed: &Observed<'_>) -> Plan<Action, EtcdBackupStatus> {
    let settled = |status| Plan { actions: Vec::new(), status, next: Next::OnChange, waits_for: None };
    let state = state(observed);
    let status = status::status(observed, &state);
    let waits_for = status.message.clone();
    let is_of_plane = observed.backup.spec.karmada_deployment_ref.is_some();
    match state {
        // It is verified next.
        State::Taken(..) if observed.backup.spec.verify.is_some() => {
            Plan { next: Next::after_seconds(1), ..settled(status) }
        }
        State::Taken(..) | State::GivenUp(..) => settled(status),
        // Machines are not watched, nor are planes.
        State::Waits(reason, _) if reason == Reason::CertificatesExpired || is_of_plane => {
            Plan { next: Next::after_seconds(LOOK_AGAIN_SECONDS), waits_for, ..settled(status) }
        }
        State::Waits(..) | State::Runs(_) => Plan { waits_for, ..settled(status) },
        State::Begins(run) => Plan { actions: vec![Action::Begin(run)], waits_for, ..settled(status) },
        State::Retries(_, at) => Plan { next: until(observed.now, at), waits_for, ..settled(status) },
    }
}

/// What is done about one that has ended: it is verified, and goes once its time is over.
fn stays(observed: &Observed<'_>) -> Plan<Action, EtcdBackupStatus> {
    let verification = verification(observed);
    let status = match &verification {
        Some(verification) => status::verifying(observed, verification),
        None => observed.backup.status.clone().unwrap_or_default(),
    };
    let waits_for = verification.as_ref().and(status.message.clone());
    let (mut actions, next) = match verification {
        Some(Verification::Begins(job)) => {
            (vec![Action::Verify(job)], Next::after_seconds(LOOK_AT_VERIFICATION_SECONDS))
        }
        Some(Verification::UnderWay(_)) => (Vec::new(), Next::after_seconds(LOOK_AT_VERIFICATION_SECONDS)),
        // The status is written, and read again.
        Some(Verification::NotMade(_)) => (Vec::new(), Next::after_seconds(LOOK_AGAIN_SECONDS)),
        Some(Verification::Retries(at)) => (Vec::new(), until(observed.now, at)),
        Some(Verification::Good(_) | Verification::Damaged(_)) | None => (Vec::new(), Next::OnChange),
    };
    // Even a short life does not end before the verification was tried.
    let is_at_rest = actions.is_empty() && next == Next::OnChange;
    let was_tried = observed.backup.status.as_ref().is_some_and(|status| status.verification_tried_at.is_some());
    let next = match expiry(observed) {
        Expiry::Due if is_at_rest || was_tried => {
            actions = vec![Action::Expire];
            next
        }
        Expiry::Later(expiry) if is_at_rest => expiry,
        Expiry::Due | Expiry::Later(_) => next,
    };
    Plan { actions, status, next, waits_for }
}

fn until(now: Timestamp, at: Timestamp) -> Next {
    Next::after_seconds(u64::try_from(at.as_second() - now.as_second()).unwrap_or_default().max(1))
}

/// Whether it stays until what it has stored is removed.
pub fn is_held(backup: &EtcdBackup) -> bool {
    backup.has_finalizer(finalizer::BACKUP)
}

/// What is done about one that is being deleted.
fn leaves(observed: &Observed<'_>) -> Plan<Action, EtcdBackupStatus> {
    let removal = removal(observed);
    let status = status::leaving(observed, &removal);
    let current = removal::job_name(observed);
    let is_done_with = |job: &&Job| match removal {
        Removal::Done | Removal::Failed(_) => true,
        _ => job.name() != current,
    };
    let forgotten = observed.jobs.iter().filter(is_done_with);
    let mut actions: Vec<Action> = forgotten.map(|job| Action::Forget(Box::new(job.clone()))).collect();
    let mut next = Next::after_seconds(LOOK_AGAIN_SECONDS);
    match removal {
        Removal::Done => actions.push(Action::RemoveFinalizer),
        Removal::Stops(run) if !run.spec.cancel => actions.push(Action::CancelRun(Box::new(run.clone()))),
        Removal::Begins(job) => {
            actions.push(Action::Remove(job));
            next = Next::after_seconds(LOOK_SECONDS);
        }
        Removal::UnderWay(_) => next = Next::after_seconds(LOOK_SECONDS),
        Removal::Stops(_) | Removal::Waits(..) | Removal::Failed(_) | Removal::Retries | Removal::Stuck(_) => {}
    }
    Plan { actions, waits_for: status.message.clone(), status, next }
}

fn state<'a>(observed: &Observed<'a>) -> State<'a> {
    let tried = run::attempts(observed);
    match attempts::last(&tried, |run| run.status.as_ref()?.backup.as_ref()) {
        Attempt::UnderWay(run) => State::Runs(run),
        Attempt::Made(run, content) => State::Taken(run, content),
        Attempt::GivenUp(reason, message) => {
            State::GivenUp(reason, format!("{message}; to try again, make a new EtcdBackup"))
        }
        // The restore that it precedes is not held up any longer.
        Attempt::Failed(run, _) if before::is_before_restore(observed.backup) && !attempts::was_paused(run) => {
            State::GivenUp(attempts::reason_of(run), format!("run {}: {}", run.name(), attempts::said(run)))
        }
        Attempt::Failed(run, at) if at > observed.now => State::Retries(run, at),
        Attempt::None | Attempt::Failed(..) => begin(observed, attempts::next_number(&tried)),
    }
}

/// The next attempt, if it can begin.
fn begin<'a>(observed: &Observed<'a>, tried: usize) -> State<'a> {
    if let Some(message) = before::too_late(observed) {
        return State::GivenUp(Reason::RestoreBegan.into(), message);
    }
    let cluster = match source(observed) {
        Ok(cluster) => cluster,
        Err(state) => return state,
    };
    if let Err(unusable) = usable(&observed.backup.spec.storage_ref.name, observed.storage) {
        return State::Waits(unusable.reason, unusable.message);
    }
    State::Begins(unclaimed(observed.runs, tried, |number| run::next(observed, cluster, number)))
}

#[cfg(test)]
mod tests;
