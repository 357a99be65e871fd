//! How many workers of each set may be taken out of service.

use std::collections::BTreeMap;

use crds::MachineSet;
use crds::step::Role;

use super::state::{ClusterMachine, ClusterState};
use super::surge;
use crate::departure::is_healthy;
use crate::{claims, disruption};

/// How many more of each set may be taken out of service, by the set's name. Out of service are those that are not well
/// or are drained, and those of which the caller says so.
pub(super) fn room(
    state: &ClusterState<'_>,
    is_worked_on: impl Fn(&ClusterMachine<'_>) -> bool,
) -> BTreeMap<String, usize> {
    let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
    for worker in state.of_role(Role::Worker).filter(ClusterMachine::is_provisioned) {
        let is_out = is_worked_on(&worker) || !is_healthy(worker.machine) || !worker.machine.spec.drain_for.is_empty();
        let counts = counts.entry(set_of(&worker)).or_default();
        match is_out {
            true => counts.out += 1,
            false => counts.serving += 1,
        }
    }
    let left = |(name, counts): (String, Counts)| {
        let left = counts.left(state, state.set(&name));
        (name, left)
    };
    counts.into_iter().map(left).collect()
}

/// The machines of a set.
#[derive(Default)]
struct Counts {
    out: usize,
    serving: usize,
}

impl Counts {
    /// How many more may be taken out of service.
    fn left(&self, state: &ClusterState<'_>, set: Option<&MachineSet>) -> usize {
        match set {
            Some(set) if surge::keeps_capacity(state, set) => self.serving.saturating_sub(state.capacity(set)),
            set => set.map_or(1, |set| disruption::most(set, Some(state.deployment))).saturating_sub(self.out),
        }
    }
}

/// Name of the set of a worker; empty: it is of none.
pub(super) fn set_of(worker: &ClusterMachine<'_>) -> String {
    claims::set_of(worker.machine).unwrap_or_default().to_owned()
}
