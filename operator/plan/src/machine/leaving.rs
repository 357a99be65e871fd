//! The end of a Machine: its Pods are moved, it leaves etcd, its Node is deleted, its machine cleaned by a Reset run,
//! and its Host given back. Each is done before the next one begins; where it stands is the reason of `Deleting`.

mod cleaning;
mod deletion;
mod deletion_steps;
mod drain;
mod force;
mod quarantine;
mod resets;

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

use super::action::Action;
use super::observed::{Observed, active_run, held};
use super::{member, remediation};
use crate::attempts::RetryDecision;
use crate::message::cut;
use crate::{Next, Plan, hooks, provisioning, store};
use cleaning::{Cleaning, clean};
use deletion::Leaving;
pub(super) use deletion_steps::looks_at_pods;
use deletion_steps::{DeletionSteps, leave_cluster};
use resets::is_clean;

pub(super) fn plan(observed: &Observed<'_>) -> Plan<Action, MachineStatus> {
    let leaving = leave(observed);
    let machine = observed.machine;
    let mut old = machine.status.clone().unwrap_or_default();
    if machine.condition(condition::DELETING).is_none() {
        // A drain of before says nothing of this one.
        old.conditions.retain(|there| there.type_ != condition::DRAINED);
    }
    let provisioned_at = old.provisioned_at.clone().or_else(|| provisioned_at(observed));
    let phase = match leaving.reason {
        Reason::Draining => MachinePhase::Draining,
        _ => MachinePhase::Deleting,
    };
    let status = MachineStatus {
        observed_generation: machine.metadata.generation,
        phase: Some(phase),
        message: Some(cut(leaving.message.clone())),
        conditions: conditions::state(
            &old.conditions,
            &statements(observed, &leaving, provisioned_at.is_some()),
            machine.metadata.generation,
            &Time(observed.now),
        ),
        provisioned_at,
        etcd_member_id: member::id(observed),
        blocked_pods: leaving.blocked_pods.clone(),
        ..old
    };
    Plan { actions: leaving.actions, status, next: leaving.next, waits_for: Some(leaving.message) }
}

fn statements(observed: &Observed<'_>, leaving: &Leaving, is_provisioned: bool) -> Vec<Statement> {
    let machine = observed.machine;
    let message = cut(leaving.message.clone());
    let not_ready = Statement::new(condition::READY, false, Reason::Deleting, message.clone());
    let mut statements = vec![not_ready.clone(), Statement::new(condition::DELETING, true, leaving.reason, message)];
    let old = machine.status.as_ref();
    let said_provisioned = old.is_some_and(|status| conditions::is_true(&status.conditions, condition::PROVISIONED));
    if !said_provisioned && provisioning::was_touched(machine, observed.runs) {
        // What makes a reset due is not forgotten with the run.
        let message = "a run has worked on its Host";
        statements.push(Statement::new(condition::PROVISIONED, false, Reason::Touched, message));
    }
    if is_provisioned && has_ready_node(observed) {
        // The cluster counts on it until it is out, also when it was deleted before its node was seen.
        statements.push(Statement::new(condition::NODE_READY, true, Reason::NodeReady, "its node is Ready"));
    }
    statements.extend(hooks_passed_over(observed));
    statements.extend(leaving.drained.clone().map(|drained| Statement { message: cut(drained.message), ..drained }));
    // That it is being replaced.
    statements.extend(remediation::statement(observed, &not_ready));
    statements
}

/// When a run made it part of its cluster, although it was leaving by then: neither that nor that the cluster stands is
/// forgotten with the run.
fn provisioned_at(observed: &Observed<'_>) -> Option<Time> {
    let (machine, host) = (observed.machine, held(observed));
    let cluster = observed.formed?;
    let terms = || cluster.terms.terms();
    let decision = provisioning::retry_decision(machine, host, terms, observed.runs, observed.now);
    match decision {
        RetryDecision::Done { at, .. } => at.map(Time),
        _ => None,
    }
}

fn has_ready_node(observed: &Observed<'_>) -> bool {
    let name = held(observed).map(|host| host.name());
    let mut nodes = observed.nodes.into_iter().flatten();
    nodes.any(|node| Some(node.name.as_str()) == name && node.ready == Some(true))
}

/// Hooks that it goes without: an administrator asked for them, and is told.
fn hooks_passed_over(observed: &Observed<'_>) -> Option<Statement> {
    let host = held(observed)?.name();
    let touched = provisioning::was_touched(observed.machine, observed.runs);
    if !touched || is_clean(observed, host) {
        return None;
    }
    let why = force::removal(observed, host).map(force::Force::why);
    let message = hooks::passed_over(observed.machine, observed.deployment()?, observed.runs, why.as_deref())?;
    Some(Statement::new(condition::HOOKS_PLAYED, false, Reason::PassedOver, cut(message)))
}

/// Whether the Machine says that it is to be cleaned now: nothing else is left to be done before.
pub fn waits_for_reset(machine: &crds::Machine) -> bool {
    let deleting = machine.condition(condition::DELETING);
    deleting.is_some_and(|deleting| deleting.reason == Reason::WaitingForReset)
}

/// Whether a person says that the Machine is to be forgotten without reaching its Host.
pub fn is_forced(machine: &crds::Machine) -> bool {
    force::is_asked(machine)
}

fn leave(observed: &Observed<'_>) -> Leaving {
    let held_back = observed.formed.filter(|cluster| !cluster.is_believed(observed.resumed_at));
    if let Some(cluster) = held_back {
        // Its Node may be another machine's by now, and its Host another's.
        let message = store::waiting(cluster.name);
        return Leaving { next: Next::after_seconds(30), ..Leaving::waits(Reason::LookingAtMachines, message) };
    }
    let Some(host) = held(observed) else {
        return Leaving {
            actions: vec![Action::RemoveFinalizer],
            ..Leaving::waits(Reason::HostReleased, "its Host is given back".into())
        };
    };
    let name = host.name();
    if let Some(run) = active_run(observed.runs, name) {
        let run = run.name();
        let message = format!("waits for run {run} on Host {name} to end");
        return Leaving::waits(Reason::RunUnderWay, message);
    }
    let force = force::removal(observed, name);
    let drained = match leave_cluster(observed, name, force) {
        DeletionSteps::Waits(leaving) => return leaving,
        DeletionSteps::Over(drained) => drained,
    };
    let leaving = match clean(observed, host, force) {
        Cleaning::Waits(message, until) => Leaving {
            next: until.map_or(Next::OnChange, |until| later(observed, until)),
            ..Leaving::waits(Reason::WaitingForReset, message)
        },
        // A kubelet may have made its Node again until it was stopped.
        Cleaning::Over(quarantine) => match deletion_steps::node(observed, name, force) {
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
        None => format!("gives Host {} back", host.name()),
        Some(quarantine) => {
            format!("gives Host {} back, quarantined ({:?}): {}", host.name(), quarantine.reason, quarantine.message)
        }
    };
    Leaving {
        actions: vec![
            Action::Release {
                host: Box::new(host.clone()),
                finalizers: finalizers.into_iter().filter(|there| there != finalizer::HOST).collect(),
                identity: identity_kept(host, quarantine.as_ref()),
                quarantine,
            },
            Action::RemoveFinalizer,
        ],
        ..Leaving::waits(Reason::ReleasingHost, message)
    }
}

#[cfg(test)]
mod tests;
