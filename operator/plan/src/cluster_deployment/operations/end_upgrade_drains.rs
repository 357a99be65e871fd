//! Lets Nodes take Pods again that were drained for an upgrade, once their machines have it.

use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::cluster_deployment::upgrade;

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let drained: Vec<&ClusterMachine<'_>> =
        state.live.iter().filter(|machine| upgrade::is_drained_for(machine)).collect();
    if drained.is_empty() {
        return Proposal::default();
    }
    let is_over = |machine: &&ClusterMachine<'_>| {
        let is_due = state.upgrade.as_ref().is_some_and(|upgrade| upgrade.is_due(machine));
        let is_free = machine.host_name().is_none_or(|host| state.active_on(host).is_none());
        !is_due && is_free
    };
    let over = drained.into_iter().filter(is_over);
    Proposal::actions(over.map(|machine| upgrade::drain(machine, false)).collect())
}
