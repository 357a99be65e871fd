//! What a Machine shows while it lives.

mod last_run;
mod node;
mod node_metadata;
mod provisioned;
mod up_to_date;

use crds::Machine;
use crds::ObjectExt;
use crds::Reason;
use crds::conditions::{self, Statement};
use crds::drift::DriftSeen;
use crds::kstatus::Standing;
use crds::machine::{AppliedSettings, MachinePhase, MachineStatus};
use crds::names::condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::draining::{self, Draining};
use super::hold::Hold;
use super::observed::Observed;
use super::{member, parts, remediation};
use crate::attempts::RetryDecision;
use crate::certificates;
use crate::cluster::NodeSeen;
use crate::host::identity;
use crate::message::cut;
use crate::{drift, node_metadata as metadata, settings};

pub(super) use node::{FRESH, find as node_of};

pub(super) fn machine_status(
    observed: &Observed<'_>,
    hold: &Hold<'_>,
    decision: &RetryDecision,
    draining: &Draining,
) -> (MachineStatus, Option<String>) {
    let machine = observed.machine;
    let old = machine.status.clone().unwrap_or_default();
    let host = match hold {
        Hold::Held(host) => Some(*host),
        Hold::Take(_) | Hold::Nothing { .. } => None,
    };
    let has_node = observed.has_node();
    let node = host.filter(|_| has_node).and_then(|host| node::find(observed, host));
    let version = match (has_node, node) {
        (true, Some(node)) if !node.kubelet_version.is_empty() => Some(node.kubelet_version.clone()),
        (true, _) => old.kubernetes_version.clone(),
        (false, _) => None,
    };
    let applied = host.and_then(|host| settings::applied(machine, host.name(), observed.runs)).or(old.applied.clone());
    let (seen_at, certificates) = certificates::shown(machine, observed.runs);
    let drift = drift::shown(machine, observed.runs);
    let has = Has { version: version.as_deref(), applied: applied.as_ref(), drift: drift.as_ref() };
    let (ready, conditions) = conditions(observed, hold, decision, node, &has, draining);
    let status = MachineStatus {
        observed_generation: machine.metadata.generation,
        phase: Some(phase(hold, decision, &ready, draining)),
        message: Some(cut(message(machine, &ready, draining))),
        node_name: host.filter(|_| has_node).map(|host| host.name().to_owned()),
        addresses: node.map_or(old.addresses, |node| node.addresses.clone()),
        kubernetes_version: version,
        etcd_member_id: member::id(observed),
        certificates_expire_at: certificates::first_to_end(&certificates).map(|first| first.expires_at.clone()),
        certificates_seen_at: seen_at,
        certificates,
        provisioned_at: match decision {
            RetryDecision::Done { at, .. } => at.map(Time).or(old.provisioned_at),
            // Also of a machine whose cluster is not there now.
            _ => old.provisioned_at,
        },
        applied,
        parts: parts::shown(observed),
        registered_taints: match host {
            Some(_) => metadata::registered(machine),
            None => old.registered_taints,
        },
        drift,
        last_run: host.and_then(|host| last_run::newest(observed, host)).or(old.last_run),
        blocked_pods: draining.blocked_pods.clone(),
        conditions,
    };
    let waits_for = (ready.status != Some(true)).then_some(ready.message);
    (status, waits_for)
}

/// One sentence. Of a machine that is well: what it is drained for, and how far that is.
fn message(machine: &Machine, ready: &Statement, draining: &Draining) -> String {
    match &draining.drained {
        Some(drained) if ready.status == Some(true) && !machine.spec.drain_for.is_empty() => {
            format!("{}: {}", draining::reasons(machine), drained.message)
        }
        Some(_) | None => ready.message.clone(),
    }
}

/// What a machine has, as far as that is known.
struct Has<'a> {
    /// Of its kubelet.
    version: Option<&'a str>,
    applied: Option<&'a AppliedSettings>,
    /// Where it differs from what was applied.
    drift: Option<&'a DriftSeen>,
}

/// `Ready`, and all conditions.
fn conditions(
    observed: &Observed<'_>,
    hold: &Hold<'_>,
    decision: &RetryDecision,
    node: Option<&NodeSeen>,
    has: &Has<'_>,
    draining: &Draining,
) -> (Statement, Vec<Condition>) {
    let machine = observed.machine;
    let host = match hold {
        Hold::Held(host) => Some(*host),
        Hold::Take(_) | Hold::Nothing { .. } => None,
    };
    let has_node = observed.has_node();
    let done = matches!(decision, RetryDecision::Done { .. });
    let claimed = provisioned::claimed(hold);
    let provisioned = provisioned::statement(observed, host, decision);
    let node_ready = node::ready(observed, node, decision);
    let ready = ready(
        observed,
        &claimed,
        host.and_then(identity::another),
        &provisioned,
        (has_node && done).then_some(&node_ready),
    );
    let mut statements = vec![ready.clone(), claimed, provisioned];
    let repair = remediation::statement(observed, if has_node { &node_ready } else { &ready });
    let old = machine.status.as_ref();
    let mut old_conditions = old.map(|status| status.conditions.clone()).unwrap_or_default();
    let network = node::network(node);
    let drifted = drift::statement(observed.deployment(), machine, has.drift, observed.runs);
    // What was said once, and is not said now, is not known.
    let spoken = [
        (condition::REMEDIATION, repair.is_some()),
        (condition::NETWORK_READY, network.is_some()),
        (condition::DRAINED, draining.drained.is_some()),
        (condition::DRIFTED, drifted.is_some()),
    ];
    old_conditions.retain(|there| !spoken.contains(&(there.type_.as_str(), false)));
    if has_node {
        statements.push(node_ready);
    }
    statements.extend(network);
    if done {
        statements.push(node::healthy(&ready, node));
    }
    statements.push(up_to_date::statement(observed, has.version, done, has.applied, host));
    statements.extend(drifted);
    statements.extend(repair);
    statements.extend(draining.drained.clone().map(|drained| Statement { message: cut(drained.message), ..drained }));
    let is_stalled =
        matches!(decision, RetryDecision::Halted { .. }) || ready.reason == Reason::MachineIdentityMismatch;
    let standing = Standing::new(ready.status == Some(true), is_stalled);
    standing.report(&ready, &mut old_conditions, &mut statements);
    let generation = machine.metadata.generation;
    let conditions = conditions::state(&old_conditions, &statements, generation, &Time(observed.now));
    (ready, conditions)
}

/// Ready: as its claim says, then as its provisioning does, then as its node and its etcd member do. The node counts
/// once the machine is provisioned.
fn ready(
    observed: &Observed<'_>,
    claimed: &Statement,
    another: Option<String>,
    provisioned: &Statement,
    node_ready: Option<&Statement>,
) -> Statement {
    let as_it_says = |statement: &Statement| {
        Statement::new(condition::READY, statement.status, statement.reason.clone(), statement.message.clone())
    };
    let another =
        another.map(|message| Statement::new(condition::READY, false, Reason::MachineIdentityMismatch, message));
    let mut before = [Some(claimed), another.as_ref(), Some(provisioned), node_ready].into_iter().flatten();
    match before.find(|statement| statement.status != Some(true)) {
        Some(statement) => as_it_says(statement),
        None => member::not_well(observed)
            .or_else(|| parts::not_well(observed))
            .unwrap_or_else(|| Statement::new(condition::READY, true, Reason::Running, "running")),
    }
}

fn phase(hold: &Hold<'_>, decision: &RetryDecision, ready: &Statement, draining: &Draining) -> MachinePhase {
    match (hold, decision) {
        (Hold::Take(_), _) => MachinePhase::Claiming,
        (Hold::Nothing { reason, .. }, _) if *reason == Reason::NoHost || *reason == Reason::HostNotReady => {
            MachinePhase::Claiming
        }
        (Hold::Nothing { .. }, _) => MachinePhase::Pending,
        (Hold::Held(_), RetryDecision::Halted { .. }) => MachinePhase::Failed,
        // Not to know is not to be ill.
        (Hold::Held(_), RetryDecision::Done { .. })
            if ready.status != Some(false) && ready.reason != Reason::NodeSilent =>
        {
            if draining.is_under_way() {
                MachinePhase::Draining
            } else {
                MachinePhase::Running
            }
        }
        (Hold::Held(_), RetryDecision::Done { .. }) => MachinePhase::Unhealthy,
        (Hold::Held(_), _) => MachinePhase::Provisioning,
    }
}
