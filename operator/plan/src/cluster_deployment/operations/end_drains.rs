//! Lets Nodes take Pods again that were drained for an upgrade, or for another configuration, once their machines have
//! it.

use crds::machine::DrainReason;

use super::configure;
use crate::cluster_deployment::drained_for::{drain, is_drained_for};
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState};

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let drained = |reason| {
        let drained = state.live.iter().filter(move |machine| is_drained_for(machine, reason));
        let is_free =
            |machine: &&ClusterMachine<'_>| machine.host_name().is_none_or(|host| state.active_on(host).is_none());
        drained.filter(is_free).peekable()
    };
    let mut actions = Vec::new();
    let mut for_upgrade = drained(DrainReason::Upgrade);
    if for_upgrade.peek().is_some() {
        let upgrade = state.upgrade.as_ref();
        let is_due = |machine: &&ClusterMachine<'_>| upgrade.is_some_and(|upgrade| upgrade.is_due(machine));
        let over = for_upgrade.filter(|machine| !is_due(machine));
        actions.extend(over.map(|machine| drain(machine, DrainReason::Upgrade, false)));
    }
    let over = drained(DrainReason::Configuration).filter(|machine| !configure::is_drained_still(state, machine));
    actions.extend(over.map(|machine| drain(machine, DrainReason::Configuration, false)));
    Proposal::actions(actions)
}
