//! What a ClusterDeployment shows: its conditions, and its phase.

use crds::ClusterDeploymentStatus;
use crds::Reason;
use crds::conditions::{self, Statement};
use crds::kstatus::{self, Standing};
use crds::names::condition;
use crds::step::Role;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::addons_ready::addons;
use super::blocker::Blocker;
use super::component_status::{ComponentStatus, control_plane, etcd, workers};
use super::deletion::Deletion;
use super::gates;
use super::network_ready::network;
use super::operations::hold_runs;
use super::proposal::{Area, Round, Severity};
use super::sentence::sentence;
use super::state::ClusterState;
use super::summary::base;
use super::up_to_date;
use crate::cluster_machine::ClusterMachine;
use crate::lock::Lock;
use crate::lock::tokens::{Lost, Tokens};
use crate::message::cut;
use crate::store::verdict::Verdict;

pub(super) fn deleting(
    state: &ClusterState<'_>,
    lock: &Lock,
    tokens: &Tokens,
    deletion: &Deletion,
    verdict: Option<&Verdict>,
) -> ClusterDeploymentStatus {
    let mut status = base(state, lock, tokens);
    status.repairs.clear();
    status.repair_approval = None;
    // A cluster that is deleted owes nobody anything.
    status.forgotten.clear();
    let is_over = |type_: &str| match type_ {
        condition::MACHINES_FORGOTTEN => true,
        condition::LOCK_AVAILABLE => tokens.lost().is_none(),
        condition::STORE_IS_OLDER => verdict.is_none(),
        _ => false,
    };
    status.conditions.retain(|there| !is_over(&there.type_));
    status.phase = Some("Deleting".into());
    let message = cut(deletion.message.clone());
    status.message = Some(message.clone());
    let mut statements = vec![
        Statement::new(condition::READY, false, Reason::Deleting, message.clone()),
        Statement::new(condition::DELETING, true, deletion.reason, message),
    ];
    statements.extend(tokens.lost().map(Lost::statement));
    statements.extend(verdict.map(Verdict::statement));
    state_all(state, &mut status, &statements);
    status
}

fn state_all(state: &ClusterState<'_>, status: &mut ClusterDeploymentStatus, statements: &[Statement]) {
    status.conditions = conditions::state(
        &status.conditions,
        statements,
        state.deployment.metadata.generation,
        &Time(state.observed.now),
    );
}

/// The status of a cluster that is not being deleted, and what its unfinished work waits for.
pub(super) fn living(state: &ClusterState<'_>, round: &Round) -> (ClusterDeploymentStatus, Option<String>) {
    let mut status = base(state, &round.lock, &round.tokens);
    let components = Components {
        control_plane: control_plane(state, Role::ControlPlane, round),
        etcd: etcd(state, round),
        workers: workers(state, round),
    };
    let blocker = blocker(state, round, &components);
    let (pause, paused) = match round.paused {
        true => hold_runs::says(state, &round.lock),
        false => (Reason::NotPaused, "spec.paused is false".into()),
    };
    let mut message = sentence(state, round, blocker.as_ref());
    if round.paused {
        message = match state.active.is_empty() {
            // A cluster that is well is told so, and what is lacking when nothing was held.
            _ if blocker.is_none() => format!("{paused}; {message}"),
            true if pause == Reason::SpecPaused => format!("{paused}; {message}"),
            _ => paused.clone(),
        };
    }
    let ready = match &blocker {
        None => Statement::new(condition::READY, true, Reason::Running, cut(message.clone())),
        Some(blocker) => {
            let status = blocker.known.then_some(false);
            Statement::new(condition::READY, status, blocker.reason.clone(), cut(message.clone()))
        }
    };
    let mut statements = vec![
        ready.clone(),
        components.control_plane.statement(condition::CONTROL_PLANE_READY),
        components.etcd.statement(condition::ETCD_READY),
        components.workers.statement(condition::WORKERS_READY),
        network(state, round),
        addons(state),
        up_to_date::statement(state, round.report(Area::Upgrade), round.report(Area::Configuration)),
        progressing(state, round, &message),
        Statement::new(condition::PAUSED, round.paused, pause, cut(paused)),
    ];
    let standing = Standing::new(ready.status == Some(true), waits_for_somebody(state, round));
    standing.report(&ready, &mut status.conditions, &mut statements);
    statements.extend(round.conditions.iter().cloned());
    round.record(&mut status);
    state_all(state, &mut status, &statements);
    status.phase = Some(phase(state, round, &components, blocker.is_some()).into());
    status.message = Some(cut(message.clone()));
    let unfinished = blocker.is_some() || !state.active.is_empty() || !state.leaving.is_empty();
    (status, unfinished.then_some(message))
}

struct Components {
    control_plane: ComponentStatus,
    etcd: ComponentStatus,
    workers: ComponentStatus,
}

/// Why the cluster is not as wanted: the first that explains the others.
fn blocker(state: &ClusterState<'_>, round: &Round, components: &Components) -> Option<Blocker> {
    let problem = round.problem.as_ref();
    // A cluster that is not there yet waits for its lock; one that runs does so without.
    let closed = round.tokens.lost().filter(|_| state.installed.is_none());
    let reported = |area| round.report(area).map(Blocker::from);
    reported(Area::Store)
        .or_else(|| problem.map(|problem| Blocker::new(problem.reason, problem.message.clone())))
        .or_else(|| closed.map(|lost| Blocker::new(Reason::LockClosed, lost.message.clone())))
        .or_else(|| reported(Area::Rebuild))
        .or_else(|| reported(Area::Install))
        .or_else(|| components.control_plane.blocker())
        .or_else(|| components.etcd.blocker())
        .or_else(|| components.workers.blocker())
        .or_else(|| gates::blocker(state))
}

/// Whether the install, or a wish that cannot be met, waits for somebody.
fn has_failed(round: &Round) -> bool {
    let install = round.report(Area::Install);
    round.problem.is_some() || install.is_some_and(|install| install.severity == Severity::Stalled)
}

fn waits_for_somebody(state: &ClusterState<'_>, round: &Round) -> bool {
    let is_stalled = |machine: &ClusterMachine<'_>| {
        let mut status = machine.machine.status.iter();
        status.any(|status| kstatus::is_stalled(&status.conditions))
    };
    let is_stalled_in = |area| round.report(area).is_some_and(|report| report.severity == Severity::Stalled);
    let is_held = [Area::Store, Area::Configuration, Area::Upgrade].into_iter().any(is_stalled_in);
    has_failed(round) || is_held || state.live.iter().any(is_stalled)
}

fn phase(state: &ClusterState<'_>, round: &Round, components: &Components, is_blocked: bool) -> &'static str {
    let serves = components.control_plane.status == Some(true) && !components.workers.bad;
    match state.installed {
        _ if !is_blocked => "Running",
        Some(_) if serves && round.problem.is_none() => "Running",
        Some(_) => "Degraded",
        None if has_failed(round) => "Failed",
        None if state.active.is_empty() && state.founders().is_none() => "Pending",
        None => "Provisioning",
    }
}

fn progressing(state: &ClusterState<'_>, round: &Round, message: &str) -> Statement {
    let stated =
        |status, reason: Reason, message: String| Statement::new(condition::PROGRESSING, status, reason, cut(message));
    match state.active.is_empty() {
        false => stated(true, Reason::RunUnderWay, message.to_owned()),
        true if round.pending && round.problem.is_none() => stated(true, Reason::Waiting, message.to_owned()),
        true => stated(false, Reason::Idle, "no run is under way, and none is due".into()),
    }
}
