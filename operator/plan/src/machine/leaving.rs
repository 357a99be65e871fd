//! The end of a Machine: its machine is cleaned by a Reset run, its Node deleted, its Host given back.

use crds::cluster_deployment::DeletionPolicy;
use crds::conditions::{self, Statement};
use crds::machine::MachinePhase;
use crds::names::{condition, finalizer};
use crds::step::{Intent, Role, Step as RunStep};
use crds::{Host, MachineStatus, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Observed, Step, active_run, name_of, status};
use crate::attempts::{self, Outcome};
use crate::{Next, Plan, claims, provisioning};

/// How often a deleted Node is looked for again.
const NODE_SECONDS: u64 = 5;

struct Leaving {
    steps: Vec<Step>,
    next: Next,
    reason: &'static str,
    message: String,
}

impl Leaving {
    fn waits(reason: &'static str, message: String) -> Self {
        Self {
            steps: Vec::new(),
            next: Next::OnChange,
            reason,
            message,
        }
    }
}

pub(super) fn plan(observed: &Observed<'_>) -> Plan<Step, MachineStatus> {
    let leaving = leave(observed);
    let machine = observed.machine;
    let old = machine.status.clone().unwrap_or_default();
    let mut statements = vec![
        Statement::new(condition::READY, false, "Deleting", leaving.message.clone()),
        Statement::new(condition::DELETING, true, leaving.reason, leaving.message.clone()),
    ];
    let provisioned = conditions::is_true(&old.conditions, condition::PROVISIONED);
    if !provisioned && provisioning::was_touched(machine, observed.runs) {
        // What makes a reset due is not forgotten with the run.
        let message = "a run has worked on its Host";
        statements.push(Statement::new(condition::PROVISIONED, false, "Touched", message));
    }
    let status = MachineStatus {
        observed_generation: machine.metadata.generation,
        phase: Some(MachinePhase::Deleting),
        message: Some(crate::sentence::cut(leaving.message.clone())),
        conditions: conditions::state(
            &old.conditions,
            &statements,
            machine.metadata.generation,
            &Time(observed.now),
        ),
        ..old
    };
    Plan {
        steps: leaving.steps,
        status,
        next: leaving.next,
        waits_for: Some(leaving.message),
    }
}

fn leave(observed: &Observed<'_>) -> Leaving {
    let machine = observed.machine;
    let Some(host) = observed
        .hosts
        .iter()
        .copied()
        .find(|host| claims::holds(machine, host))
    else {
        return Leaving {
            steps: vec![Step::RemoveFinalizer],
            next: Next::OnChange,
            reason: "HostReleased",
            message: "its Host is given back".into(),
        };
    };
    let name = name_of(host);
    if let Some(run) = active_run(observed.runs, name) {
        let run = run.metadata.name.as_deref().unwrap_or_default();
        return Leaving::waits(
            "RunUnderWay",
            format!("waits for run {run} on Host {name} to end"),
        );
    }
    let live = observed
        .deployment
        .filter(|deployment| deployment.metadata.deletion_timestamp.is_none());
    let installed = |deployment: &crds::ClusterDeployment| {
        deployment
            .status
            .as_ref()
            .is_some_and(|status| status.installed_at.is_some())
    };
    let running = live.filter(|deployment| installed(deployment));
    if running.is_some() && machine.spec.role != Role::Worker {
        let message = format!(
            "removing a {} machine from a running cluster is not there yet: Host {name} stays as it is until cluster {} is deleted",
            machine.spec.role.name(),
            machine.spec.cluster_name
        );
        return Leaving::waits("NotImplemented", message);
    }
    let detach = observed
        .deployment
        .is_none_or(|deployment| live.is_none() && deployment.spec.deletion_policy == DeletionPolicy::Detach);
    if detach || !provisioning::was_touched(machine, observed.runs) || is_clean(observed, name) {
        return match running.and_then(|_| node_in_the_way(observed, name)) {
            Some(leaving) => leaving,
            None => release(host),
        };
    }
    Leaving::waits("WaitsForReset", waits_for_reset(observed, name))
}

/// Whether a run since the deletion has left the machine clean.
fn is_clean(observed: &Observed<'_>, host: &str) -> bool {
    resets(observed, host).any(|run| attempts::outcome(run, host) == Outcome::Succeeded)
}

fn resets<'a>(observed: &'a Observed<'_>, host: &'a str) -> impl Iterator<Item = &'a PlaybookRun> {
    let deleted = observed
        .machine
        .metadata
        .deletion_timestamp
        .as_ref()
        .map(|time| time.0);
    let since = move |run: &PlaybookRun| -> bool {
        let made: Option<Timestamp> = run.metadata.creation_timestamp.as_ref().map(|time| time.0);
        made >= deleted
    };
    observed
        .runs
        .iter()
        .copied()
        .filter(|run| run.spec.intent != Intent::Probe && run.spec.steps.contains(&RunStep::Reset))
        .filter(move |run| since(run) && run.spec.hosts.iter().any(|named| named == host))
}

fn waits_for_reset(observed: &Observed<'_>, host: &str) -> String {
    let last = resets(observed, host).max_by_key(|run| attempts::attempt_of(run));
    let goes_on = observed
        .deployment
        .is_some_and(|deployment| deployment.metadata.deletion_timestamp.is_none());
    match last.map(|run| attempts::outcome(run, host)) {
        Some(Outcome::Failed(failure)) if goes_on && failure.was_stopped() => format!(
            "the reset of Host {host} was stopped ({}): {}; look at the machine, then {}",
            failure.reason,
            failure.message,
            status::retry(observed)
        ),
        Some(Outcome::Failed(failure)) => format!(
            "Host {host} could not be cleaned ({}): {}; it is tried again",
            failure.reason, failure.message
        ),
        Some(Outcome::Canceled) => format!("the reset of Host {host} was canceled; it is tried again"),
        Some(Outcome::Held) => format!("the reset of Host {host} waits for the end of the pause"),
        _ => format!("waits for the reset of Host {host}"),
    }
}

fn node_in_the_way(observed: &Observed<'_>, node: &str) -> Option<Leaving> {
    let machine = observed.machine;
    let Some(nodes) = observed.nodes else {
        return Some(Leaving::waits(
            "ClusterUnreachable",
            format!(
                "waits for the API of cluster {} to delete Node {node}",
                machine.spec.cluster_name
            ),
        ));
    };
    nodes.iter().find(|seen| seen.name == node)?;
    Some(Leaving {
        steps: vec![Step::DeleteNode {
            namespace: machine.metadata.namespace.clone().unwrap_or_default(),
            cluster: machine.spec.cluster_name.clone(),
            node: node.into(),
        }],
        next: Next::after_seconds(NODE_SECONDS),
        reason: "DeletesNode",
        message: format!("deletes Node {node}"),
    })
}

fn release(host: &Host) -> Leaving {
    let finalizers = host.metadata.finalizers.clone().unwrap_or_default();
    Leaving {
        steps: vec![
            Step::Release {
                host: Box::new(host.clone()),
                finalizers: finalizers
                    .into_iter()
                    .filter(|there| there != finalizer::HOST)
                    .collect(),
            },
            Step::RemoveFinalizer,
        ],
        next: Next::OnChange,
        reason: "ReleasesHost",
        message: format!("gives Host {} back", name_of(host)),
    }
}
