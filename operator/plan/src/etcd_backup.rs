//! EtcdBackup: asks for the run that takes the backup, again if that fails, and shows what came out; and removes what
//! it has stored when it is deleted, if that is wished.

mod expiry;
mod needed;
mod observed;
mod removal;
mod run;
mod state;
mod status;

use crds::cluster_deployment::EtcdTopology;
use crds::etcd_backup::BackupDeletionPolicy;
use crds::names::{condition, finalizer};
use crds::{Conditions, EtcdBackup, EtcdBackupStatus, ObjectExt, PlaybookRun, Reason};
use k8s_openapi::api::batch::v1::Job;

use crate::attempts::{self, Attempt};
use crate::lifecycle::is_installed;
use crate::{Next, Plan};
use expiry::{Expiry, expiry};
pub use needed::needed_by;
pub use observed::Observed;
use removal::{Removal, removal};
use state::State;

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Hold the object until what it has stored is removed.
    AddFinalizer,
    /// Create this run, unless it is there already.
    Begin(Box<PlaybookRun>),
    /// Stop this run, which takes a backup that is being deleted.
    CancelRun(Box<PlaybookRun>),
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
/// The same for what may change unseen: a Secret, a restore that ends.
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
    let settled = |status| Plan { actions: Vec::new(), status, next: Next::OnChange, waits_for: None };
    if observed.backup.is_deleting() {
        return match is_held(observed.backup) {
            true => leaves(observed),
            false => settled(observed.backup.status.clone().unwrap_or_default()),
        };
    }
    if is_over(observed.backup) {
        let settled = settled(observed.backup.status.clone().unwrap_or_default());
        return match expiry(observed) {
            Expiry::Due => Plan { actions: vec![Action::Expire], ..settled },
            Expiry::Later(next) => Plan { next, ..settled },
        };
    }
    let state = state(observed);
    let status = status::status(observed, &state);
    let waits_for = status.message.clone();
    match state {
        State::Taken(..) | State::GivenUp(..) => settled(status),
        State::Waits(..) | State::Runs(_) => Plan { waits_for, ..settled(status) },
        State::Begins(run) => {
            let holds = observed.backup.spec.deletion_policy == BackupDeletionPolicy::Delete;
            let hold = (holds && !is_held(observed.backup)).then_some(Action::AddFinalizer);
            let actions = hold.into_iter().chain([Action::Begin(run)]).collect();
            Plan { actions, waits_for, ..settled(status) }
        }
        State::Retries(_, at) => {
            let seconds = u64::try_from(at.as_second() - observed.now.as_second()).unwrap_or_default();
            Plan { next: Next::after_seconds(seconds.max(1)), waits_for, ..settled(status) }
        }
    }
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
        Attempt::Failed(run, at) if at > observed.now => State::Retries(run, at),
        Attempt::None | Attempt::Failed(..) => begin(observed, tried.len()),
    }
}

/// The next attempt, if it can begin.
fn begin<'a>(observed: &Observed<'a>, tried: usize) -> State<'a> {
    let spec = &observed.backup.spec;
    let cluster = &spec.cluster_name;
    let Some(deployment) = observed.deployment else {
        let message = format!("ClusterDeployment {cluster} is not there: make it, or delete this backup");
        return State::Waits(Reason::ClusterNotFound, message);
    };
    if deployment.is_deleting() {
        return State::GivenUp(Reason::ClusterDeleting.into(), format!("ClusterDeployment {cluster} is being deleted"));
    }
    if deployment.spec.etcd.topology == EtcdTopology::External {
        let message = format!("the etcd of cluster {cluster} is external: it is not backed up here yet");
        return State::GivenUp(Reason::EtcdExternal.into(), message);
    }
    if !is_installed(deployment) {
        return State::Waits(Reason::NotInstalled, format!("cluster {cluster} is not installed yet"));
    }
    if let Some((reason, message)) = storage_problem(observed) {
        return State::Waits(reason, message);
    }
    State::Begins(Box::new(run::next(observed, deployment, tried)))
}

/// Why nothing can be stored now.
fn storage_problem(observed: &Observed<'_>) -> Option<(Reason, String)> {
    let name = &observed.backup.spec.storage_ref.name;
    let Some(storage) = observed.storage else {
        return Some((Reason::StorageNotFound, format!("BackupStorage {name} is not there: make it")));
    };
    let Some(reachable) = storage.condition(condition::REACHABLE) else {
        return Some((Reason::StorageNotProbed, format!("BackupStorage {name} is being probed")));
    };
    let is_reached = reachable.status == "True";
    let message = format!("BackupStorage {name} cannot be used: {}", reachable.message);
    (!is_reached).then_some((Reason::StorageUnreachable, message))
}

#[cfg(test)]
mod tests;
