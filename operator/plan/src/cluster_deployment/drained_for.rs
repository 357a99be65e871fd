//! Nodes that are drained before something is done to their machines that Pods would not outlive.

use crds::Conditions;
use crds::machine::DrainReason;
use crds::names::condition;

use super::action::Action;
use super::proposal::Proposal;
use super::state::ClusterMachine;

/// Whether the Node of a machine is kept drained for this reason.
pub(super) fn is_drained_for(machine: &ClusterMachine<'_>, reason: DrainReason) -> bool {
    machine.machine.spec.drain_for.contains(&reason)
}

/// Has its Node drained for this reason, or not any more.
pub(super) fn drain(machine: &ClusterMachine<'_>, reason: DrainReason, wanted: bool) -> Action {
    let mut reasons = machine.machine.spec.drain_for.clone();
    reasons.retain(|other| *other != reason);
    if wanted {
        reasons.push(reason);
    }
    Action::SetDrainFor { machine: Box::new(machine.machine.clone()), reasons }
}

/// What is done until no Pod is left on the Node that would not outlive it; none: it may begin.
pub(super) fn drained(
    machine: &ClusterMachine<'_>,
    reason: DrainReason,
    progressing: &dyn Fn(&str) -> Proposal,
) -> Option<Proposal> {
    if !is_drained_for(machine, reason) {
        return Some(progressing("its Node is drained").and(drain(machine, reason, true)));
    }
    let drained = machine.machine.condition(condition::DRAINED);
    let now = drained.filter(|drained| drained.observed_generation == machine.machine.metadata.generation);
    match now {
        Some(drained) if drained.status == "True" => None,
        Some(drained) => Some(progressing(&format!("its Node is drained: {}", drained.message))),
        None => Some(progressing("its Node is drained")),
    }
}
