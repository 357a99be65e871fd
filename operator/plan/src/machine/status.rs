//! What a Machine shows while it lives.

use crds::conditions::{self, Statement};
use crds::machine::{LastRun, MachinePhase, MachineStatus};
use crds::names::{annotation, condition};
use crds::step::{Intent, Role};
use crds::{Host, PlaybookRun};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Hold, Observed, active_run, member, name_of, remediation};
use crate::attempts::{self, Outcome, Turn};
use crate::cluster::NodeSeen;
use crate::sentence::{count, cut};

/// Reason of a machine whose kubelet does not speak to its API server any more: nobody lost sight of the cluster.
const SILENT: &str = "NodeSilent";
/// How long a node may take to be seen before that is spoken of.
pub(super) const FRESH: SignedDuration = SignedDuration::from_secs(60);

pub(super) fn of(observed: &Observed<'_>, hold: &Hold<'_>, turn: &Turn) -> (MachineStatus, Option<String>) {
    let machine = observed.machine;
    let old = machine.status.clone().unwrap_or_default();
    let host = match hold {
        Hold::Held(host) => Some(*host),
        Hold::Take(_) | Hold::Nothing { .. } => None,
    };
    let has_node = machine.spec.role != Role::Etcd;
    let node = host.filter(|_| has_node).and_then(|host| node_of(observed, host));
    let done = matches!(turn, Turn::Done { .. });
    let claimed = host_claimed(hold);
    let provisioned = provisioned(observed, host, turn);
    let fresh = is_fresh(observed, turn);
    let node_ready = node_ready(observed, node, done, fresh);
    let ready = if claimed.status != Some(true) {
        Statement::new(
            condition::READY,
            false,
            claimed.reason.clone(),
            claimed.message.clone(),
        )
    } else if !done {
        Statement::new(
            condition::READY,
            false,
            provisioned.reason.clone(),
            provisioned.message.clone(),
        )
    } else if has_node && node_ready.status != Some(true) {
        Statement::new(
            condition::READY,
            node_ready.status,
            node_ready.reason.clone(),
            node_ready.message.clone(),
        )
    } else {
        let well = || Statement::new(condition::READY, true, "Running", "running");
        member::not_well(observed).unwrap_or_else(well)
    };
    let phase = match (hold, turn) {
        (Hold::Take(_), _) => MachinePhase::Claiming,
        (Hold::Nothing { reason, .. }, _) if *reason == "NoHost" || *reason == "HostNotReady" => {
            MachinePhase::Claiming
        }
        (Hold::Nothing { .. }, _) => MachinePhase::Pending,
        (Hold::Held(_), Turn::Halted { .. }) => MachinePhase::Failed,
        // Not to know is not to be ill.
        (Hold::Held(_), Turn::Done { .. }) if ready.status != Some(false) && ready.reason != SILENT => {
            MachinePhase::Running
        }
        (Hold::Held(_), Turn::Done { .. }) => MachinePhase::Unhealthy,
        (Hold::Held(_), _) => MachinePhase::Provisioning,
    };
    let version = match (has_node, node) {
        (true, Some(node)) if !node.kubelet_version.is_empty() => Some(node.kubelet_version.clone()),
        (true, _) => old.kubernetes_version.clone(),
        (false, _) => None,
    };
    let mut statements = vec![ready.clone(), claimed, provisioned];
    let repair = remediation::statement(observed, if has_node { &node_ready } else { &ready });
    let mut old_conditions = old.conditions.clone();
    if repair.is_none() {
        old_conditions.retain(|there| there.type_ != condition::REMEDIATION);
    }
    if has_node {
        statements.push(node_ready);
    }
    if done {
        statements.push(healthy(&ready, node));
    }
    statements.push(up_to_date(observed, version.as_deref(), done));
    statements.extend(repair);
    let status = MachineStatus {
        observed_generation: machine.metadata.generation,
        phase: Some(phase),
        message: Some(cut(ready.message.clone())),
        node_name: host.filter(|_| has_node).map(|host| name_of(host).to_owned()),
        addresses: node.map_or(old.addresses, |node| node.addresses.clone()),
        kubernetes_version: version,
        etcd_member_id: member::id(observed),
        provisioned_at: match turn {
            Turn::Done { at, .. } => at.map(Time).or(old.provisioned_at),
            _ => None,
        },
        last_run: host.and_then(|host| last_run(observed, host)).or(old.last_run),
        conditions: conditions::state(
            &old_conditions,
            &statements,
            machine.metadata.generation,
            &Time(observed.now),
        ),
    };
    let waits_for = (ready.status != Some(true)).then_some(ready.message);
    (status, waits_for)
}

fn healthy(ready: &Statement, node: Option<&NodeSeen>) -> Statement {
    let pressures = node.map(|node| node.pressures.join(", ")).unwrap_or_default();
    if ready.status == Some(true) && !pressures.is_empty() {
        return Statement::new(
            condition::HEALTHY,
            false,
            "NodePressure",
            format!("its node has {pressures}"),
        );
    }
    let message = if ready.status == Some(true) {
        ""
    } else {
        &ready.message
    };
    Statement::new(condition::HEALTHY, ready.status, ready.reason.clone(), message)
}

fn host_claimed(hold: &Hold<'_>) -> Statement {
    let of = |status, reason: &str, message: String| {
        Statement::new(condition::HOST_CLAIMED, status, reason, message)
    };
    match hold {
        Hold::Held(host) => of(true, "Claimed", format!("Host {}", name_of(host))),
        Hold::Take(host) => of(false, "Claiming", format!("claims Host {}", name_of(host))),
        Hold::Nothing { reason, message } => of(false, reason, message.clone()),
    }
}

fn provisioned(observed: &Observed<'_>, host: Option<&Host>, turn: &Turn) -> Statement {
    let of = |status, reason: &str, message: String| {
        Statement::new(condition::PROVISIONED, status, reason, message)
    };
    let Some(host) = host else {
        return of(false, "WaitsForHost", "has no Host yet".into());
    };
    match turn {
        Turn::Done { run, .. } => of(true, "Provisioned", format!("run {run}")),
        Turn::UnderWay { run } => of(false, "Provisioning", under_way(observed, name_of(host), run)),
        Turn::Now { .. } => of(false, "WaitsForRun", waits_for_run(observed)),
        Turn::Later { at, cause, .. } => of(
            false,
            &cause.reason,
            format!(
                "{} (tried again at {})",
                cause.message,
                at.strftime("%H:%M:%S UTC")
            ),
        ),
        Turn::Halted { failures, cause } => match cause {
            Some(cause) => of(
                false,
                &cause.reason,
                format!(
                    "{} (gave up after {}: correct it, then {})",
                    cause.message,
                    count(*failures, "attempt"),
                    retry(observed)
                ),
            ),
            None => of(
                false,
                "Canceled",
                format!("the run was canceled (to go on: {})", retry(observed)),
            ),
        },
    }
}

/// What a person types to have another attempt.
pub(super) fn retry(observed: &Observed<'_>) -> String {
    let metadata = &observed.machine.metadata;
    let value = attempts::next_retry(
        metadata.annotations.as_ref(),
        metadata.generation.unwrap_or_default(),
    );
    format!(
        "kubectl annotate --overwrite machine {} {}={value}",
        metadata.name.as_deref().unwrap_or_default(),
        annotation::RETRY
    )
}

fn under_way(observed: &Observed<'_>, host: &str, run: &str) -> String {
    // The step, and not the task: a task a second would be a write a second for each Machine.
    let found = active_run(observed.runs, host).and_then(|run| run.status.as_ref());
    match found.and_then(|status| status.progress.as_ref()) {
        Some(progress) if !progress.step.is_empty() => format!("run {run}: {}", progress.step),
        _ => format!("run {run} begins"),
    }
}

fn waits_for_run(observed: &Observed<'_>) -> String {
    let deployment = observed
        .deployment
        .and_then(|deployment| deployment.status.as_ref());
    let installed = deployment.is_some_and(|status| status.installed_at.is_some());
    match (observed.machine.spec.role, installed) {
        (Role::Worker, false) => "joins once the control plane is installed".into(),
        (Role::Worker, true) => "waits for its run to begin".into(),
        (Role::ControlPlane | Role::Etcd, false) => "waits for the install to begin".into(),
        (Role::ControlPlane | Role::Etcd, true) => {
            "waits for its turn to join: control planes and etcd machines change one at a time".into()
        }
    }
}

fn node_of<'a>(observed: &Observed<'a>, host: &Host) -> Option<&'a NodeSeen> {
    observed.nodes?.iter().find(|node| node.name == name_of(host))
}

/// Whether the machine became part of its cluster only just now, so that its node may not have been seen yet.
fn is_fresh(observed: &Observed<'_>, turn: &Turn) -> bool {
    let at = match turn {
        Turn::Done { at, .. } => *at,
        _ => None,
    };
    at.is_some_and(|at| observed.now.duration_since(at) < FRESH)
}

fn node_ready(observed: &Observed<'_>, node: Option<&NodeSeen>, done: bool, fresh: bool) -> Statement {
    let of = |status: Option<bool>, reason: &str, message: String| {
        Statement::new(condition::NODE_READY, status, reason, message)
    };
    match (node, observed.nodes) {
        (Some(node), _) => match node.ready {
            Some(true) => of(Some(true), "NodeReady", String::new()),
            Some(false) if !done => of(Some(false), "NodeStarting", node.message.clone()),
            Some(false) => of(
                Some(false),
                "NodeNotReady",
                format!("its node is not Ready: {}", node.message),
            ),
            None => of(None, SILENT, format!("its kubelet is silent: {}", node.message)),
        },
        (None, _) if fresh => of(
            None,
            "NodeNotSeenYet",
            "provisioned; waits for its node to be seen".into(),
        ),
        (None, Some(_)) if done => of(
            Some(false),
            "NodeNotFound",
            "the cluster has no Node of this machine".into(),
        ),
        (None, Some(_)) => of(Some(false), "NodeNotThereYet", String::new()),
        (None, None) if done => of(
            None,
            "ClusterUnreachable",
            format!(
                "the API of cluster {} does not answer",
                observed.machine.spec.cluster_name
            ),
        ),
        (None, None) => of(None, "ClusterNotThereYet", String::new()),
    }
}

fn up_to_date(observed: &Observed<'_>, version: Option<&str>, done: bool) -> Statement {
    let wanted = observed.machine.spec.kubernetes_version.as_str();
    let of = |status: Option<bool>, reason: &str, message: String| {
        Statement::new(condition::UP_TO_DATE, status, reason, message)
    };
    match (observed.machine.spec.role, version) {
        (Role::Etcd, _) if done => of(Some(true), "UpToDate", String::new()),
        (_, Some(version)) if version == wanted => of(Some(true), "UpToDate", String::new()),
        (_, Some(version)) => of(
            Some(false),
            "OtherVersion",
            format!("has {version}, {wanted} is wanted"),
        ),
        (_, None) => of(None, "NotSeenYet", String::new()),
    }
}

/// The newest run that is over and was about this Machine, or worked on its Host since it was claimed.
fn last_run(observed: &Observed<'_>, host: &Host) -> Option<LastRun> {
    let uid = observed.machine.metadata.uid.as_deref().unwrap_or_default();
    let name = name_of(host);
    let status = observed.machine.status.as_ref();
    let claimed = status.and_then(|status| conditions::find(&status.conditions, condition::HOST_CLAIMED));
    let claimed = claimed
        .filter(|claimed| claimed.status == "True")
        .map(|claimed| &claimed.last_transition_time);
    let about = |run: &PlaybookRun| match attempts::marks(run).get(name) {
        Some(mark) => mark.uid == uid,
        None => {
            run.spec.intent != Intent::Probe
                && run.spec.hosts.iter().any(|named| named == name)
                && claimed.is_some_and(|claimed| run.metadata.creation_timestamp.as_ref() >= Some(claimed))
        }
    };
    let newest = observed
        .runs
        .iter()
        .filter(|run| attempts::is_over(run) && about(run))
        .max_by_key(|run| (attempts::ended_at(run), run.metadata.name.clone()))?;
    let (outcome, message) = match attempts::outcome(newest, name) {
        Outcome::Succeeded => ("Succeeded", None),
        Outcome::Canceled => ("Canceled", None),
        Outcome::Held => ("Paused", None),
        Outcome::Failed(failure) if failure.unreachable => ("Unreachable", Some(failure)),
        Outcome::Failed(failure) => ("Failed", Some(failure)),
        Outcome::UnderWay => return None,
    };
    Some(LastRun {
        name: newest.metadata.name.clone().unwrap_or_default(),
        outcome: outcome.into(),
        message: message.map(|failure| cut(format!("{}: {}", failure.reason, failure.message))),
    })
}
