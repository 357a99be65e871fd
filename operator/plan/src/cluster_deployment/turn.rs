//! Whether it is the turn of a control plane, or of a machine of etcd, that is changed and stays.

use crds::step::Role;

use super::state::{ClusterMachine, ClusterState};
use crate::departure::is_healthy;

/// What is changed already and goes first.
pub(super) fn in_the_way(state: &ClusterState<'_>) -> Option<String> {
    let membership = state.membership();
    membership.leaving_in_the_way().or_else(|| membership.run_in_the_way(None))
}

/// Why nothing is done to a control plane or a machine of etcd now. One that is tried again may itself be why etcd or
/// the API is not well.
pub(super) fn why_not_now(state: &ClusterState<'_>, tried: Option<&ClusterMachine<'_>>) -> Option<String> {
    let is_other = |machine: &&ClusterMachine<'_>| {
        machine.machine.spec.role != Role::Worker && tried.is_none_or(|tried| tried.uid() != machine.uid())
    };
    let mut others = state.live.iter().filter(is_other);
    let sick = others.find(|machine| machine.is_provisioned() && !is_healthy(machine.machine));
    let is_well = || state.waits_for_etcd().or_else(|| state.waits_for_api()).filter(|_| tried.is_none());
    in_the_way(state)
        .or_else(|| sick.map(|sick| format!("waits for {} to be well ({})", sick.title(), sick.says())))
        .or_else(is_well)
}
