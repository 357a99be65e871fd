//! What a ClusterDeployment shows: conditions, and the sentence that says what it does or waits for.

use crds::ClusterDeploymentStatus;
use crds::Conditions;
use crds::ObjectExt;
use crds::Reason;
use crds::conditions::{self, Statement};
use crds::kstatus::{self, Standing};
use crds::names::condition;
use crds::step::{Intent, Role};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::blocker::Blocker;
use super::component_status::{ComponentStatus, control_plane, etcd, workers};
use super::deletion::Deletion;
use super::gates;
use super::machine::ClusterMachine;
use super::operations::compare_store::Verdict;
use super::operations::hold_runs;
use super::proposal::{Area, Round, Severity};
use super::request::describe;
use super::state::ClusterState;
use super::summary::base;
use super::up_to_date;
use super::up_to_date::NOT_INSTALLED;
use crate::lock::Lock;
use crate::lock::tokens::{Lost, Tokens};
use crate::message::{count, cut};
use crate::naming;

/// Machines that a condition names at most; their number is always told.
const NAMED: usize = 5;

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

/// The STATUS sentence of a cluster that is not paused.
fn sentence(state: &ClusterState<'_>, round: &Round, blocker: Option<&Blocker>) -> String {
    let renewal = round.report(Area::Certificates);
    let upgrade = round.report(Area::Upgrade);
    let first = match (blocker, state.active.first()) {
        (Some(blocker), _) => blocker.message.clone(),
        (None, Some(run)) if renewal.is_none() && upgrade.is_none() => format!("running; {}", describe(state, run)),
        (None, _) => "running".into(),
    };
    // What came of a worker that was tried beside the install is not hidden by it.
    let joins = round.report(Area::Machines(Role::Worker)).filter(|report| {
        state.installed.is_none() && report.severity != Severity::Progressing && report.message != first
    });
    let joins = joins.map(|report| report.message.clone());
    let renewal = renewal.map(|report| report.message.clone());
    let upgrade = upgrade.map(|report| report.message.clone());
    let closed = round.tokens.lost().map(|lost| lost.message.clone());
    let closed = closed.filter(|closed| *closed != first);
    let repair = round.report(Area::Remediation);
    let repair = repair.map(|report| format!("repair: {}", report.message));
    let is_described = state.active.iter().any(|run| run.spec.intent == Intent::Configure);
    let configuration = round.report(Area::Configuration).filter(|_| !is_described);
    let configuration = configuration.map(|report| report.message.clone());
    let drift = round.report(Area::Drift).map(|report| report.message.clone());
    let stated = |type_: &str| round.conditions.iter().find(|statement| statement.type_ == type_);
    let wrong = |type_: &str| stated(type_).filter(|statement| statement.status == Some(false));
    let message = |statement: &Statement| statement.message.clone();
    let etcd = wrong(condition::ETCD_DATA_HEALTHY).map(message).filter(|message| *message != first);
    let is_renewed = |statement: &&Statement| statement.reason == Reason::RenewingCertificates;
    let ends = wrong(condition::CERTIFICATES_VALID).filter(|statement| !is_renewed(statement)).map(message);
    let rotation = wrong(condition::AUTHORITIES_ROTATED).map(message);
    let rest = [joins, renewal, upgrade, closed, repair, configuration, rotation, drift, etcd, ends, queue(round)]
        .into_iter()
        .flatten();
    std::iter::once(first).chain(rest).collect::<Vec<_>>().join("; ")
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

/// `run by-hand waits for a-join-x7k2m9-0 (and 2 more runs wait)`.
fn queue(round: &Round) -> Option<String> {
    let queue = &round.lock.queue;
    let first = queue.first().filter(|_| round.tokens.lost().is_none())?;
    let more = match queue.len() {
        1 => String::new(),
        more => format!(" (and {} more wait)", count(more - 1, "run")),
    };
    let behind = match first.behind.as_slice() {
        [] => "its turn".to_owned(),
        [one] => one.clone(),
        [one, others @ ..] => format!("{one} and {} more", others.len()),
    };
    Some(format!("run {} waits for {behind}{more}", first.run))
}

fn network(state: &ClusterState<'_>, round: &Round) -> Statement {
    if state.installed.is_none() {
        return Statement::new(condition::NETWORK_READY, false, Reason::NotInstalled, NOT_INSTALLED);
    }
    if let Some(message) = cut_off(state) {
        return Statement::new(condition::NETWORK_READY, false, Reason::NodesCutOff, cut(message));
    }
    let part = control_plane(state, Role::ControlPlane, round);
    let message = if part.status == Some(true) {
        format!("the control plane's nodes are Ready: {}", part.message)
    } else {
        part.message
    };
    Statement::new(
        condition::NETWORK_READY,
        part.status,
        if part.status == Some(true) { Reason::NodesReady } else { Reason::NodesNotReady },
        cut(message),
    )
}

/// The machines that say that their Pods do not reach others, or the DNS; each with what it says.
fn cut_off(state: &ClusterState<'_>) -> Option<String> {
    let said = |member: &ClusterMachine<'_>| {
        let network = member.machine.condition(condition::NETWORK_READY)?;
        (network.status == "False").then(|| format!("{}: {}", member.title(), network.message))
    };
    let mut all: Vec<String> = state.live.iter().filter_map(said).collect();
    all.sort();
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    let named = all.join("; ");
    match more {
        _ if all.is_empty() => None,
        0 => Some(named),
        more => Some(format!("{named}; and {}", count(more, "more machine"))),
    }
}

fn addons(state: &ClusterState<'_>) -> Statement {
    let stated = |status: Option<bool>, reason: Reason, message: String| {
        Statement::new(condition::ADDONS_READY, status, reason, message)
    };
    if state.installed.is_none() {
        return stated(Some(false), Reason::NotInstalled, NOT_INSTALLED.into());
    }
    // Another DaemonSet of that name is its owner's.
    let (names, all): (&[&str], &str) = match state.deployment.spec.has_kube_proxy() {
        true => (&["coredns", "kube-proxy"], "coredns and kube-proxy are rolled out"),
        false => (&["coredns"], "coredns is rolled out; the network plugin serves Services"),
    };
    let bad = names.iter().find_map(|name| match state.component(name) {
        Some((false, message)) => Some(format!("{name}: {message}")),
        _ => None,
    });
    let own = own_addon(state);
    match (bad, own) {
        (Some(message), _) => stated(Some(false), Reason::AddonsUnhealthy, cut(message)),
        (None, Some((true, _, message))) => stated(Some(true), Reason::RolledOut, cut(format!("{all}; {message}"))),
        (None, Some((false, reason, message))) => stated(Some(false), reason, cut(message)),
        (None, None) => stated(Some(true), Reason::RolledOut, all.into()),
    }
}

/// How the Addon of `spec.addons` is: whether it is as it is wanted, and what it says; nothing where none is wanted.
fn own_addon(state: &ClusterState<'_>) -> Option<(bool, Reason, String)> {
    state.deployment.spec.addon_manifests()?;
    let name = naming::own_addon(&state.name);
    let Some(there) = state.observed.addon else {
        return Some((false, Reason::AddonsUnhealthy, format!("Addon {name} is being made")));
    };
    if !there.is_owned_by(state.deployment.uid()) {
        let message = format!("Addon {name} is not that of spec.addons: delete it, or make it anew under another name");
        return Some((false, Reason::AddonTaken, message));
    }
    let said = there.status.as_ref().and_then(|status| status.message.clone());
    let said = said.unwrap_or_else(|| "its controller has not looked at it yet".to_owned());
    Some((there.is_true(condition::READY), Reason::AddonsUnhealthy, format!("Addon {name}: {said}")))
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
