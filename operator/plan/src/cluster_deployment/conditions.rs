//! What a ClusterDeployment shows: conditions, and the sentence that says what it does or waits for.

use crds::ClusterDeploymentStatus;
use crds::conditions::{self, Statement};
use crds::kstatus::{self, Standing};
use crds::names::condition;
use crds::step::Role;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::Work;
use super::deletion::Deletion;
use super::forgotten;
use super::gates;
use super::install::Install;
use super::lack::{Lack, not_installed, problem};
use super::lock::Lock;
use super::member::Member;
use super::part::{component, etcd, members, workers};
use super::pause;
use super::removals;
use super::runs::describe;
use super::scene::Scene;
use super::summary::base;
use super::tokens::Tokens;
use super::up_to_date;
use crate::sentence::{count, cut};

pub(super) const NOT_INSTALLED: &str = "the cluster is not installed yet";

/// Machines that a condition names at most; their number is always told.
const NAMED: usize = 5;

pub(super) fn deleting(
    scene: &Scene<'_>,
    lock: &Lock,
    tokens: &Tokens,
    deletion: &Deletion,
) -> ClusterDeploymentStatus {
    let mut status = base(scene, lock);
    status.repairs.clear();
    status.repair_approval = None;
    forgotten::cleared(&mut status);
    status.phase = Some("Deleting".into());
    status.message = Some(cut(deletion.message.clone()));
    let message = cut(deletion.message.clone());
    let mut statements = vec![
        Statement::new(condition::READY, false, "Deleting", message.clone()),
        Statement::new(condition::DELETING, true, deletion.reason, message),
    ];
    state_lock(&mut status, &mut statements, tokens);
    status.conditions = conditions::state(
        &status.conditions,
        &statements,
        scene.deployment.metadata.generation,
        &Time(scene.observed.now),
    );
    status
}

pub(super) fn living(scene: &Scene<'_>, work: &Work<'_>) -> (ClusterDeploymentStatus, Option<String>) {
    let mut status = base(scene, &work.lock);
    let paused = scene.deployment.spec.paused;
    let control_plane = members(scene, Role::ControlPlane, work);
    let etcd = etcd(scene, work);
    let workers = workers(scene, work);
    let closed = work.tokens.lost();
    let main = problem(work)
        .or_else(|| lock_closed(scene, work))
        .or_else(|| work.rebuild.lack.clone())
        .or_else(|| not_installed(scene, work))
        .or_else(|| control_plane.lack())
        .or_else(|| etcd.lack())
        .or_else(|| workers.lack())
        .or_else(|| gates::lack(scene));
    let mut message = match &main {
        Some(main) => main.message.clone(),
        None => match scene.active.first() {
            Some(run) => format!("running; {}", describe(scene, run)),
            None => "running".into(),
        },
    };
    if let Some(closed) = closed.filter(|closed| closed.message != message) {
        message = format!("{message}; {}", closed.message);
    }
    if let Some(repair) = &work.repairs.says {
        message = format!("{message}; repair: {repair}");
    }
    if let Some(queue) = queue(work) {
        message = format!("{message}; {queue}");
    }
    let (pause, paused_where) = match paused {
        true => pause::says(scene, &work.lock),
        false => ("NotPaused", "spec.paused is false".into()),
    };
    if paused {
        message = match scene.active.is_empty() {
            // A cluster that is well is told so, and what is lacking when nothing was held.
            _ if main.is_none() => format!("{paused_where}; {message}"),
            true if pause == "SpecPaused" => format!("{paused_where}; {message}"),
            _ => paused_where.clone(),
        };
    }
    let failed = matches!(work.install, Install::Halted { .. }) || work.problem.is_some();
    let phase = match (&main, scene.installed.is_some()) {
        (None, _) => "Running",
        (Some(_), _) if failed && scene.installed.is_none() => "Failed",
        (Some(_), true) if control_plane.status == Some(true) && !workers.bad && work.problem.is_none() => {
            "Running"
        }
        (Some(_), true) => "Degraded",
        (Some(_), false) if scene.active.is_empty() && scene.founders().is_none() => "Pending",
        (Some(_), false) => "Provisioning",
    };
    let ready = match &main {
        None => Statement::new(condition::READY, true, "Running", cut(message.clone())),
        Some(main) => {
            let status = main.known.then_some(false);
            Statement::new(
                condition::READY,
                status,
                main.reason.clone(),
                cut(message.clone()),
            )
        }
    };
    let waits_for_somebody = failed
        || scene.live.iter().any(|member| {
            member
                .machine
                .status
                .iter()
                .any(|status| kstatus::is_stalled(&status.conditions))
        });
    let standing = Standing::new(ready.status == Some(true), waits_for_somebody);
    let mut statements = vec![
        ready.clone(),
        control_plane.statement(condition::CONTROL_PLANE_READY),
        etcd.statement(condition::ETCD_READY),
        workers.statement(condition::WORKERS_READY),
        network(scene, work),
        addons(scene),
        up_to_date::statement(scene),
        progressing(scene, work, &message),
        Statement::new(condition::PAUSED, paused, pause, cut(paused_where)),
    ];
    standing.report(&ready, &mut status.conditions, &mut statements);
    state_lock(&mut status, &mut statements, &work.tokens);
    work.repairs.tell(&mut status, &mut statements);
    removals::tell(&work.repairs.removals, &mut status, &mut statements);
    work.rebuild.tell(&mut status, &mut statements);
    work.forgotten.tell(&mut status, &mut statements);
    if let Some((set, theirs, ours)) = work.put_back.first() {
        statements.push(Statement::new(
            condition::SCALE_PUT_BACK,
            true,
            "CountOwnedBySpec",
            format!("MachineSet {set} was scaled to {theirs} and is put back to {ours}: change spec.workers[].replicas, or leave it out to scale the set"),
        ));
    } else {
        let stale = |there: &Condition| {
            there.type_ == condition::SCALE_PUT_BACK
                && there.observed_generation != scene.deployment.metadata.generation
        };
        status.conditions.retain(|condition| !stale(condition));
    }
    status.conditions = conditions::state(
        &status.conditions,
        &statements,
        scene.deployment.metadata.generation,
        &Time(scene.observed.now),
    );
    status.phase = Some(phase.into());
    status.message = Some(cut(message.clone()));
    let unfinished = main.is_some() || !scene.active.is_empty() || !scene.leaving.is_empty();
    (status, unfinished.then_some(message))
}

/// A lock that is closed is told; one that is open goes without saying.
fn state_lock(status: &mut ClusterDeploymentStatus, statements: &mut Vec<Statement>, tokens: &Tokens) {
    match tokens.lost() {
        Some(lost) => statements.push(Statement::new(
            condition::LOCK_OPEN,
            false,
            lost.reason,
            cut(lost.message.clone()),
        )),
        None => status
            .conditions
            .retain(|there| there.type_ != condition::LOCK_OPEN),
    }
}

/// A cluster that is not there yet waits for its lock; one that runs does so without.
fn lock_closed(scene: &Scene<'_>, work: &Work<'_>) -> Option<Lack> {
    let lost = work.tokens.lost().filter(|_| scene.installed.is_none())?;
    Some(Lack {
        known: true,
        reason: "LockClosed".into(),
        message: lost.message.clone(),
    })
}

/// `run by-hand waits for a-join-x7k2m9-0 (and 2 more runs wait)`.
fn queue(work: &Work<'_>) -> Option<String> {
    let queue = &work.lock.queue;
    let first = queue.first().filter(|_| work.tokens.lost().is_none())?;
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

fn network(scene: &Scene<'_>, work: &Work<'_>) -> Statement {
    if scene.installed.is_none() {
        return Statement::new(condition::NETWORK_READY, false, "NotInstalled", NOT_INSTALLED);
    }
    if let Some(message) = cut_off(scene) {
        return Statement::new(condition::NETWORK_READY, false, "NodesCutOff", cut(message));
    }
    let part = members(scene, Role::ControlPlane, work);
    let message = if part.status == Some(true) {
        format!("the control plane's nodes are Ready: {}", part.message)
    } else {
        part.message
    };
    Statement::new(
        condition::NETWORK_READY,
        part.status,
        if part.status == Some(true) {
            "NodesReady"
        } else {
            "NodesNotReady"
        },
        cut(message),
    )
}

/// The machines that say that their Pods do not reach others, or the DNS; each with what it says.
fn cut_off(scene: &Scene<'_>) -> Option<String> {
    let said = |member: &Member<'_>| {
        let status = member.machine.status.as_ref()?;
        let network = conditions::find(&status.conditions, condition::NETWORK_READY)?;
        (network.status == "False").then(|| format!("{}: {}", member.title(), network.message))
    };
    let mut all: Vec<String> = scene.live.iter().filter_map(said).collect();
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

fn addons(scene: &Scene<'_>) -> Statement {
    let of = |status: Option<bool>, reason: &str, message: String| {
        Statement::new(condition::ADDONS_READY, status, reason, message)
    };
    if scene.installed.is_none() {
        return of(Some(false), "NotInstalled", NOT_INSTALLED.into());
    }
    let bad = ["coredns", "kube-proxy"]
        .into_iter()
        .find_map(|name| match component(scene, name) {
            Some((false, message)) => Some(format!("{name}: {message}")),
            _ => None,
        });
    match bad {
        Some(message) => of(Some(false), "AddonsUnhealthy", cut(message)),
        None => of(
            Some(true),
            "RolledOut",
            "coredns and kube-proxy are rolled out".into(),
        ),
    }
}

fn progressing(scene: &Scene<'_>, work: &Work<'_>, message: &str) -> Statement {
    let goes_on = matches!(work.install, Install::Begins(_) | Install::Later { .. })
        || !work.joins.later.is_empty()
        || !work.joins.steps.is_empty()
        || !work.resets.later.is_empty();
    let of = |status, reason: &str, message: &str| {
        Statement::new(condition::PROGRESSING, status, reason, cut(message.to_owned()))
    };
    match (scene.active.is_empty(), goes_on && work.problem.is_none()) {
        (false, _) => of(true, "RunUnderWay", message),
        (true, true) => of(true, "Waiting", message),
        (true, false) => of(false, "Idle", "no run is under way, and none is due"),
    }
}
