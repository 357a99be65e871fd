//! The end of a Machine: its Pods are moved, it leaves etcd, its Node is deleted, its machine cleaned by a Reset run,
//! and its Host given back. Each is done before the next one begins; where it stands is the reason of `Deleting`.

mod cleaning;
pub mod drain;
mod force;
mod parting;
mod quarantine;

use crds::Conditions;
use crds::ObjectExt;
use crds::Reason;
use crds::conditions::{self, Statement};
use crds::host::Quarantine;
use crds::inputs::HostIdentity;
use crds::machine::MachinePhase;
use crds::names::{condition, finalizer};
use crds::{Host, MachineStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Observed, Step, active_run, member, name_of, remediation, status};
use crate::attempts::RetryDecision;
use crate::{Next, Plan, claims, hooks, provisioning};
use cleaning::Cleaning;
use parting::Parting;

/// Reason of `Deleting` of a machine that is to be cleaned, and not before.
pub const WAITING_FOR_RESET: Reason = Reason::WaitingForReset;

struct Leaving {
    steps: Vec<Step>,
    next: Next,
    reason: Reason,
    message: String,
    /// What is said of its Pods, if that is new.
    drained: Option<Statement>,
}

impl Leaving {
    fn waits(reason: Reason, message: String) -> Self {
        Self {
            steps: Vec::new(),
            next: Next::OnChange,
            reason,
            message,
            drained: None,
        }
    }
}

pub(super) fn plan(observed: &Observed<'_>) -> Plan<Step, MachineStatus> {
    let leaving = leave(observed);
    let machine = observed.machine;
    let old = machine.status.clone().unwrap_or_default();
    let provisioned_at = old.provisioned_at.clone().or_else(|| provisioned_at(observed));
    let message = crate::sentence::cut(leaving.message.clone());
    let mut statements = vec![
        Statement::new(condition::READY, false, Reason::Deleting, message.clone()),
        Statement::new(condition::DELETING, true, leaving.reason, message.clone()),
    ];
    let provisioned = conditions::is_true(&old.conditions, condition::PROVISIONED);
    if !provisioned && provisioning::was_touched(machine, observed.runs) {
        // What makes a reset due is not forgotten with the run.
        let message = "a run has worked on its Host";
        statements.push(Statement::new(
            condition::PROVISIONED,
            false,
            Reason::Touched,
            message,
        ));
    }
    if provisioned_at.is_some() && has_ready_node(observed) {
        // The cluster counts on it until it is out, also when it was deleted before its node was seen.
        statements.push(Statement::new(
            condition::NODE_READY,
            true,
            Reason::NodeReady,
            "its node is Ready",
        ));
    }
    statements.extend(hooks_passed_over(observed));
    statements.extend(leaving.drained.map(|drained| Statement {
        message: crate::sentence::cut(drained.message),
        ..drained
    }));
    // That it is being replaced.
    let not_ready = Statement::new(condition::READY, false, Reason::Deleting, message.clone());
    statements.extend(remediation::statement(observed, &not_ready));
    let phase = match leaving.reason {
        Reason::Draining => MachinePhase::Draining,
        _ => MachinePhase::Deleting,
    };
    let status = MachineStatus {
        observed_generation: machine.metadata.generation,
        phase: Some(phase),
        message: Some(message),
        provisioned_at,
        etcd_member_id: member::id(observed),
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

/// When a run made it part of its cluster, although it was leaving by then: neither that nor that the cluster stands is
/// forgotten with the run.
fn provisioned_at(observed: &Observed<'_>) -> Option<Time> {
    let (machine, host) = (observed.machine, held(observed));
    let decision =
        provisioning::retry_decision(machine, host, observed.deployment?, observed.runs, observed.now);
    match decision {
        RetryDecision::Done { at, .. } => at.map(Time),
        _ => None,
    }
}

fn has_ready_node(observed: &Observed<'_>) -> bool {
    let name = held(observed).map(name_of);
    let mut nodes = observed.nodes.into_iter().flatten();
    nodes.any(|node| Some(node.name.as_str()) == name && node.ready == Some(true))
}

/// Hooks that it goes without: an administrator asked for them, and is told.
fn hooks_passed_over(observed: &Observed<'_>) -> Option<Statement> {
    let host = name_of(held(observed)?);
    let touched = provisioning::was_touched(observed.machine, observed.runs);
    if !touched || cleaning::is_clean(observed, host) {
        return None;
    }
    let why = force::of(observed, host).map(force::Force::why);
    let message = hooks::passed_over(
        observed.machine,
        observed.deployment?,
        observed.runs,
        why.as_deref(),
    )?;
    let message = crate::sentence::cut(message);
    Some(Statement::new(
        condition::HOOKS_PLAYED,
        false,
        Reason::PassedOver,
        message,
    ))
}

/// Whether the planner wants to know which Pods are on the machine's node.
pub fn looks_at_pods(observed: &Observed<'_>) -> bool {
    let Some(host) = held(observed) else { return false };
    observed.machine.is_deleting() && parting::looks_at_pods(observed, name_of(host))
}

/// Whether the Machine says that it is to be cleaned now: nothing else is left to be done before.
pub fn waits_for_reset(machine: &crds::Machine) -> bool {
    let deleting = machine.condition(condition::DELETING);
    deleting.is_some_and(|deleting| deleting.reason == WAITING_FOR_RESET)
}

/// Whether a person says that the Machine is to be forgotten without reaching its Host.
pub fn is_forced(machine: &crds::Machine) -> bool {
    force::is_asked(machine)
}

fn held<'a>(observed: &Observed<'a>) -> Option<&'a Host> {
    let hosts = observed.hosts.iter().copied();
    hosts
        .into_iter()
        .find(|host| claims::holds(observed.machine, host))
}

fn leave(observed: &Observed<'_>) -> Leaving {
    let Some(host) = held(observed) else {
        return Leaving {
            steps: vec![Step::RemoveFinalizer],
            ..Leaving::waits(Reason::HostReleased, "its Host is given back".into())
        };
    };
    let name = name_of(host);
    if let Some(run) = active_run(observed.runs, name) {
        let run = run.name();
        let message = format!("waits for run {run} on Host {name} to end");
        return Leaving::waits(Reason::RunUnderWay, message);
    }
    let force = force::of(observed, name);
    let drained = match parting::of(observed, name, force) {
        Parting::Waits(leaving) => return leaving,
        Parting::Over(drained) => drained,
    };
    let leaving = match cleaning::of(observed, host, force) {
        Cleaning::Waits(message, until) => Leaving {
            next: until.map_or(Next::OnChange, |until| later(observed, until)),
            ..Leaving::waits(WAITING_FOR_RESET, message)
        },
        // A kubelet may have made its Node again until it was stopped.
        Cleaning::Over(quarantine) => match parting::node(observed, name, force) {
            Some(leaving) => leaving,
            None => release(host, quarantine),
        },
    };
    Leaving { drained, ..leaving }
}

/// Times are whole seconds: a little after it.
fn later(observed: &Observed<'_>, at: jiff::Timestamp) -> Next {
    let seconds = at.duration_since(observed.now).as_secs().max(0);
    Next::after_seconds(seconds.unsigned_abs() + 1)
}

/// A machine that may be fenced when it comes back must be that very one.
fn identity_kept(host: &Host, quarantine: Option<&Quarantine>) -> Option<HostIdentity> {
    quarantine?.fence.as_ref()?;
    host.spec.identity.clone()
}

fn release(host: &Host, quarantine: Option<Quarantine>) -> Leaving {
    let finalizers = host.metadata.finalizers.clone().unwrap_or_default();
    let message = match &quarantine {
        None => format!("gives Host {} back", name_of(host)),
        Some(quarantine) => format!(
            "gives Host {} back, quarantined ({:?}): {}",
            name_of(host),
            quarantine.reason,
            quarantine.message
        ),
    };
    Leaving {
        steps: vec![
            Step::Release {
                host: Box::new(host.clone()),
                finalizers: finalizers
                    .into_iter()
                    .filter(|there| there != finalizer::HOST)
                    .collect(),
                identity: identity_kept(host, quarantine.as_ref()),
                quarantine,
            },
            Step::RemoveFinalizer,
        ],
        ..Leaving::waits(Reason::ReleasingHost, message)
    }
}

#[cfg(test)]
mod tests;
