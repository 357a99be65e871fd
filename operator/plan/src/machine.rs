//! Machine: takes a Host, follows its provisioning and its node, and gives the Host back in the end.

mod action;
mod draining;
mod hindrance;
mod hold;
pub mod leaving;
mod member;
mod node;
mod observed;
mod parts;
mod remediation;
mod retry;
mod status;

use crds::ObjectExt;
use crds::names::finalizer;
use crds::references::{ClaimRef, LocalRef};
use crds::{Host, Machine, MachineStatus};

use crate::attempts::RetryDecision;
use crate::claims;
use crate::{Next, Plan, provisioning};
pub use action::Action;
use hold::{Hold, hold};
pub use observed::{NodeAnswer, Observed};
use status::machine_status;

/// Whether the planner wants to know which Pods are on the machine's node.
pub fn looks_at_pods(observed: &Observed<'_>) -> bool {
    let Some(host) = observed::held(observed) else { return false };
    match observed.machine.is_deleting() {
        true => leaving::looks_at_pods(observed, host.name()),
        false => draining::looks_at_pods(observed, host),
    }
}

/// Decides.
pub fn plan(observed: &Observed<'_>) -> Plan<Action, MachineStatus> {
    if observed.machine.is_deleting() {
        return leaving::plan(observed);
    }
    let hold = hold(observed);
    let mut actions = Vec::new();
    if !observed.machine.has_finalizer(finalizer::MACHINE) {
        actions.push(Action::AddFinalizer);
    }
    match &hold {
        Hold::Held(host) if observed.machine.spec.host_ref.is_none() => {
            actions.push(Action::SetHost(LocalRef::new(host.name())));
        }
        Hold::Take(host) => {
            actions.push(claim(observed.machine, host));
            if observed.machine.spec.host_ref.is_none() {
                actions.push(Action::SetHost(LocalRef::new(host.name())));
            }
        }
        Hold::Held(_) | Hold::Nothing { .. } => {}
    }
    let host = match &hold {
        Hold::Held(host) => Some(*host),
        Hold::Take(_) | Hold::Nothing { .. } => None,
    };
    let decision = observed.formed.map_or_else(
        || RetryDecision::first(None),
        |cluster| {
            let terms = || cluster.terms.terms();
            provisioning::retry_decision(observed.machine, host, terms, observed.runs, observed.now)
        },
    );
    let on_node = host.map(|host| node::plan(observed, host)).unwrap_or_default();
    actions.extend(on_node.action);
    let draining = draining::plan(observed, host);
    let (status, waits_for) = machine_status(observed, &hold, &decision, &draining);
    actions.extend(draining.actions);
    // Time alone makes a node that is not seen a missing one.
    let fresh = matches!(&decision, RetryDecision::Done { at: Some(at), .. } if observed.now.duration_since(*at) < status::FRESH);
    let next = if fresh && waits_for.is_some() {
        Next::after_seconds(status::FRESH.as_secs().unsigned_abs())
    } else if let Hold::Nothing { next, .. } = hold {
        next
    } else {
        Next::OnChange
    };
    Plan { actions, status, next: next.or_sooner(on_node.next).or_sooner(draining.next), waits_for }
}

fn claim(machine: &Machine, host: &Host) -> Action {
    let mut finalizers = host.metadata.finalizers.clone().unwrap_or_default();
    if !finalizers.iter().any(|there| there == finalizer::HOST) {
        finalizers.push(finalizer::HOST.into());
    }
    Action::Claim {
        host: Box::new(host.clone()),
        claim: ClaimRef { kind: "Machine".into(), name: machine.name().to_owned(), uid: machine.uid().to_owned() },
        epoch: host.spec.claim_epoch.saturating_add(1),
        identity: claims::identity::at_claim(host),
        finalizers,
    }
}

#[cfg(test)]
mod tests;
