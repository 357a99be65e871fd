//! EtcdRestore: has a backup laid ready on the machines, asks a person, and has etcd set back to it; or back again.
//!
//! All is decided by the runs that it owns: what they did is known whatever became of its status. A Karmada control
//! plane has none: it does the same itself, once this has handed it over.

mod action;
mod approvals;
mod leftovers;
mod lost;
mod names;
mod observed;
mod phase;
mod plane;
mod runs;
mod safety;
mod source;
mod state;
mod status;
mod turn;

use crds::cluster_deployment::EtcdTopology;
use crds::etcd_restore::StagedBackup;
use crds::names::finalizer;
use crds::step::Role;
use crds::{ClusterDeployment, EtcdRestoreStatus, Machine, ObjectExt, PlaybookRun, Reason};

use crate::attempts::{self, Attempt};
use crate::certificates::ended_on;
use crate::lifecycle::{is_installed, is_provisioned};
use crate::owned_run::{those_that_stay, unclaimed};
use crate::{Next, Plan, store};
pub use action::Action;
pub(crate) use names::id_of_uid;
pub use names::{id_of, safety_name};
pub use observed::Observed;
pub use phase::{holds_the_cluster, is_before_the_hold, is_over, keeps_others_out, lets_backup_begin};
pub use plane::needs_keys;
use runs::Runs;
use safety::backing_up;
pub use safety::safety_wanted;
pub use source::storage_of;
use state::{Doing, State};
use turn::not_its_turn;

/// Looks again after this for what nobody tells.
const LOOK_AGAIN_SECONDS: u64 = 15;

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Action, EtcdRestoreStatus> {
    match &observed.restore.spec.karmada_deployment_ref {
        Some(reference) => plane::plan(observed, &reference.name),
        None => of_cluster(observed),
    }
}

fn of_cluster(observed: &Observed<'_>) -> Plan<Action, EtcdRestoreStatus> {
    let runs = Runs::new(observed);
    let mut plan = match is_over(observed.restore) {
        true => Plan {
            actions: Vec::new(),
            status: observed.restore.status.clone().unwrap_or_default(),
            next: Next::OnChange,
            waits_for: None,
        },
        false => goes_on(observed, &runs),
    };
    leftovers::of_cluster(observed, &runs, &plan.status).add_to(&mut plan, observed.restore.is_deleting());
    plan
}

fn goes_on(observed: &Observed<'_>, runs: &Runs<'_>) -> Plan<Action, EtcdRestoreStatus> {
    let state = state(observed, runs);
    let status = status::status(observed, runs, &state);
    let mut plan = Plan { actions: Vec::new(), waits_for: status.message.clone(), status, next: Next::OnChange };
    // Also where somebody took it off.
    let is_begun = matches!(state, State::Begins(..)) || !runs.staging.is_empty() || runs.has_begun();
    if is_begun && !observed.restore.has_finalizer(finalizer::RESTORE) && !observed.restore.is_deleting() {
        plan.actions.push(Action::AddFinalizer);
    }
    match state {
        State::BacksUp(backup, _) => plan.actions.extend(backup.map(Action::BackUp)),
        State::Begins(run, _) => plan.actions.push(Action::Begin(run)),
        State::Retries(_, at, _) => {
            let seconds = u64::try_from(at.as_second() - observed.now.as_second()).unwrap_or_default();
            plan.next = Next::after_seconds(seconds.max(1));
        }
        State::Restored(..) | State::Undone(_) | State::GivenUp(..) => plan.waits_for = None,
        // Nobody is woken when the store is believed again, or not any more.
        State::Waits(Reason::LookingAtMachines, _) => plan.next = Next::after_seconds(LOOK_AGAIN_SECONDS),
        State::Interrupted(..) if observed.deployment.is_some_and(|of| unbelieved(observed, of).is_some()) => {
            plan.next = Next::after_seconds(LOOK_AGAIN_SECONDS);
        }
        State::Waits(..) | State::Runs(..) | State::AwaitsApproval(_) | State::Interrupted(..) => {}
    }
    plan
}

fn state<'a>(observed: &Observed<'a>, runs: &Runs<'a>) -> State<'a> {
    let cluster = observed.restore.spec.cluster_name.as_deref().unwrap_or_default();
    let has_begun = runs.has_begun();
    let Some(deployment) = observed.deployment.filter(|there| !there.is_deleting()) else {
        let gone = observed.deployment.map_or("is not there", |_| "is being deleted");
        let message = format!("ClusterDeployment {cluster} {gone}");
        return match observed.deployment {
            None if !has_begun && !observed.restore.is_deleting() => State::Waits(Reason::ClusterNotFound, message),
            _ => State::GivenUp(Reason::ClusterDeleting.into(), message),
        };
    };
    if has_begun {
        return after_approval(observed, runs, deployment);
    }
    if observed.restore.is_deleting() {
        return State::GivenUp(Reason::Deleting.into(), "deleted before it was approved".into());
    }
    match attempts::last(&runs.staging, runs::staged_by) {
        Attempt::UnderWay(run) => State::Runs(run, Doing::Staging),
        Attempt::Made(run, staged) => ready(observed, deployment, run, staged),
        Attempt::GivenUp(reason, message) => {
            State::GivenUp(reason, format!("{message}; to try again, make a new EtcdRestore"))
        }
        Attempt::Failed(run, at) if at > observed.now => State::Retries(run, at, Doing::Staging),
        Attempt::None | Attempt::Failed(..) => match blocker(observed, deployment) {
            Some(blocked) => blocked,
            None => {
                let stage = |number| runs::stage(observed, deployment, number);
                State::Begins(unclaimed(observed.runs, runs.tried(Doing::Staging), stage), Doing::Staging)
            }
        },
    }
}

/// Why nothing can be laid ready.
fn blocker<'a>(observed: &Observed<'a>, deployment: &ClusterDeployment) -> Option<State<'a>> {
    let cluster = deployment.name();
    if deployment.spec.etcd.topology == EtcdTopology::External {
        let message = format!(
            "the etcd of cluster {cluster} is external: whoever runs it restores it, from a backup that docs/backup.md says how to read; the control planes are stopped meanwhile"
        );
        return Some(State::GivenUp(Reason::EtcdExternal.into(), message));
    }
    if !is_installed(deployment) {
        return Some(State::Waits(Reason::NotInstalled, format!("cluster {cluster} is not installed yet")));
    }
    if let Some(waits) = unbelieved(observed, deployment) {
        return Some(waits);
    }
    not_its_turn(observed)
        .map(|message| State::Waits(Reason::WaitingForRestore, message))
        .or_else(|| source::blocker(observed))
        .or_else(|| unsettled(observed))
        .or_else(|| expired(observed))
}

/// A store that may be older than the machines: what it says of the restore may be of the past, too.
fn unbelieved<'a>(observed: &Observed<'_>, deployment: &ClusterDeployment) -> Option<State<'a>> {
    let waits = || State::Waits(Reason::LookingAtMachines, store::waiting(deployment.name()));
    (!store::is_believed(deployment, observed.resumed_at)).then(waits)
}

/// A control plane or member that comes or goes: an API server that no run holds would write beside the restored data.
fn unsettled<'a>(observed: &Observed<'a>) -> Option<State<'a>> {
    let matters = |machine: &&&Machine| machine.spec.role != Role::Worker;
    let moves = |machine: &&&Machine| machine.is_deleting() || !is_provisioned(machine);
    let found = observed.machines.iter().filter(matters).find(moves)?;
    let what = if found.is_deleting() { "leaves" } else { "joins" };
    let message = format!("Machine {} {what}: waits until control planes and etcd members are settled", found.name());
    Some(State::Waits(Reason::WaitingForMachines, message))
}

/// Members that do not believe each other do not start on the restored data, and while the cluster is held for the
/// restore nothing is renewed.
fn expired<'a>(observed: &Observed<'a>) -> Option<State<'a>> {
    let machines: Vec<&Machine> =
        those_that_stay(observed.machines, |machine| machine.spec.role != Role::Worker).collect();
    ended_on(&machines, observed.now).map(|ended| State::Waits(Reason::CertificatesExpired, ended))
}

/// All is ready: begins once it is approved.
fn ready<'a>(
    observed: &Observed<'a>,
    deployment: &ClusterDeployment,
    run: &'a PlaybookRun,
    staged: &StagedBackup,
) -> State<'a> {
    let hosts = runs::members(observed, deployment);
    let waits = unbelieved(observed, deployment).or_else(|| unsettled(observed)).or_else(|| expired(observed));
    if let Some(waits) = waits {
        return waits;
    }
    if hosts != run.spec.hosts {
        let message = format!(
            "the backup lies ready on {}, and etcd has its members on {}: make a new EtcdRestore",
            run.spec.hosts.join(", "),
            hosts.join(", ")
        );
        return State::GivenUp(Reason::MembersChanged.into(), message);
    }
    let approval = approvals::of_restore(observed, deployment, staged, &hosts, 0);
    if !approvals::is_given(observed, deployment, &approval) {
        return State::AwaitsApproval(approvals::ask_to_begin(observed, staged, &hosts, &approval));
    }
    if let Some((backup, message)) = backing_up(observed) {
        return State::BacksUp(backup, message);
    }
    State::Begins(Box::new(runs::restore(observed, deployment, staged, 0)), Doing::Restoring)
}

/// Once it has begun there are two ends: the data of the backup, or the data of before.
fn after_approval<'a>(observed: &Observed<'a>, runs: &Runs<'a>, deployment: &ClusterDeployment) -> State<'a> {
    if runs.has_begun_undo() {
        return undoing(observed, runs, deployment);
    }
    if runs.is_released() {
        return restarting(observed, runs, deployment);
    }
    let last = runs.restoring.last().copied();
    if let Some(goes_on) = last.filter(|last| !attempts::is_over(last)) {
        return State::Runs(goes_on, Doing::Restoring);
    }
    if let Some(retries) = begins_again(observed, runs, (last, Doing::Restoring)) {
        return retries;
    }
    let (tried, approved) = (runs.tried(Doing::Restoring), runs.approved(Doing::Restoring));
    let known = observed.restore.status.as_ref().and_then(|status| status.staged.as_ref());
    let staged = runs.staging.iter().find_map(|run| runs::staged_by(run)).or(known);
    let on = staged.map(|staged| {
        let hosts = runs::members(observed, deployment);
        (approvals::of_restore(observed, deployment, staged, &hosts, approved), staged)
    });
    // An API server may have written since: what it wrote would be lost without a word.
    let back = (!runs.may_have_begun_release()).then(|| approvals::of_undo(observed, deployment, 0));
    if back.as_deref().is_some_and(|value| approvals::is_given(observed, deployment, value)) {
        return State::Begins(Box::new(runs::undo(observed, deployment, 0)), Doing::Undoing);
    }
    match &on {
        Some((value, staged)) if approvals::is_given(observed, deployment, value) => {
            State::Begins(Box::new(runs::restore(observed, deployment, staged, tried)), Doing::Restoring)
        }
        _ => {
            let on = on.as_ref().map(|(value, _)| value.as_str());
            State::Interrupted(last, approvals::ask_what_now(observed, (runs, last), on, back.as_deref()))
        }
    }
}

/// The next attempt, where the executor of the last one never came up.
fn begins_again<'a>(
    observed: &Observed<'a>,
    runs: &Runs<'a>,
    (last, doing): (Option<&'a PlaybookRun>, Doing),
) -> Option<State<'a>> {
    let at = runs.begins_again(doing).filter(|at| *at > observed.now)?;
    last.map(|last| State::Retries(last, at, doing))
}

/// The control plane stands on the restored data; what holds in memory what is no more is restarted.
fn restarting<'a>(observed: &Observed<'a>, runs: &Runs<'a>, deployment: &ClusterDeployment) -> State<'a> {
    match attempts::last(&runs.restarting, |run| runs::has_succeeded(run).then_some(())) {
        Attempt::UnderWay(run) => State::Runs(run, Doing::Restarting),
        Attempt::Made(run, ()) => State::Restored(Some(run), None),
        Attempt::GivenUp(_, message) => State::Restored(runs.released(), Some(message)),
        Attempt::Failed(run, at) if at > observed.now => State::Retries(run, at, Doing::Restarting),
        Attempt::None | Attempt::Failed(..) => {
            let restart = |number| runs::restart(observed, deployment, number);
            State::Begins(unclaimed(observed.runs, runs.tried(Doing::Restarting), restart), Doing::Restarting)
        }
    }
}

fn undoing<'a>(observed: &Observed<'a>, runs: &Runs<'a>, deployment: &ClusterDeployment) -> State<'a> {
    let last = runs.undoing.last().copied();
    match last {
        Some(last) if !attempts::is_over(last) => return State::Runs(last, Doing::Undoing),
        Some(last) if runs::has_succeeded(last) => return State::Undone(last),
        Some(_) | None => {}
    }
    if let Some(retries) = begins_again(observed, runs, (last, Doing::Undoing)) {
        return retries;
    }
    let tried = runs.tried(Doing::Undoing);
    let again = approvals::of_undo(observed, deployment, runs.approved(Doing::Undoing));
    match approvals::is_given(observed, deployment, &again) {
        true => State::Begins(Box::new(runs::undo(observed, deployment, tried)), Doing::Undoing),
        false => State::Interrupted(last, approvals::ask_what_now(observed, (runs, last), None, Some(&again))),
    }
}

#[cfg(test)]
mod tests;
