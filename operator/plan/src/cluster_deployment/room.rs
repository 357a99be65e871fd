//! How many workers of each set may be taken out of service.

use std::collections::BTreeMap;

use crds::step::Role;

use super::state::{ClusterMachine, ClusterState};
use crate::departure::is_healthy;
use crate::{claims, disruption};

/// How many more of each set may be taken out of service, by the set's name. Out of service are those that are not well
/// or are drained, and those of which the caller says so.
pub(super) fn room(
    state: &ClusterState<'_>,
    is_worked_on: impl Fn(&ClusterMachine<'_>) -> bool,
) -> BTreeMap<String, usize> {
    let mut room: BTreeMap<String, usize> = BTreeMap::new();
    for worker in state.of_role(Role::Worker).filter(ClusterMachine::is_provisioned) {
        let set = set_of(&worker);
        let most = state.set(&set).map_or(1, |set| disruption::most(set, Some(state.deployment)));
        room.entry(set).or_insert(most);
    }
    let is_out = |worker: &ClusterMachine<'_>| {
        is_worked_on(worker) || !is_healthy(worker.machine) || !worker.machine.spec.drain_for.is_empty()
    };
    for worker in state.of_role(Role::Worker).filter(|worker| worker.is_provisioned() && is_out(worker)) {
        let left = room.entry(set_of(&worker)).or_default();
        *left = left.saturating_sub(1);
    }
    room
}

/// Name of the set of a worker; empty: it is of none.
pub(super) fn set_of(worker: &ClusterMachine<'_>) -> String {
    claims::set_of(worker.machine).unwrap_or_default().to_owned()
}
