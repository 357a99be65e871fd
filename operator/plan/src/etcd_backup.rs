//! EtcdBackup: asks for the run that takes the backup, again if that fails, and shows what came out.

mod observed;
mod run;
mod state;
mod status;

use crds::cluster_deployment::EtcdTopology;
use crds::names::condition;
use crds::{Conditions, EtcdBackup, EtcdBackupStatus, ObjectExt, PlaybookRun, Reason};

use crate::attempts::{self, Attempt};
use crate::lifecycle::is_installed;
use crate::{Next, Plan};
pub use observed::Observed;
use state::State;

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create this run, unless it is there already.
    Begin(Box<PlaybookRun>),
}

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
    if is_over(observed.backup) {
        return settled(observed.backup.status.clone().unwrap_or_default());
    }
    let state = state(observed);
    let status = status::status(observed, &state);
    let waits_for = status.message.clone();
    match state {
        State::Taken(..) | State::GivenUp(..) => settled(status),
        State::Waits(..) | State::Runs(_) => Plan { waits_for, ..settled(status) },
        State::Begins(run) => Plan { actions: vec![Action::Begin(run)], waits_for, ..settled(status) },
        State::Retries(_, at) => {
            let seconds = u64::try_from(at.as_second() - observed.now.as_second()).unwrap_or_default();
            Plan { next: Next::after_seconds(seconds.max(1)), waits_for, ..settled(status) }
        }
    }
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
