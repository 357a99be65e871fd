//! Replaces machines that stay although etcd goes on without them, since one member was made the only one: others take
//! their places.

use crds::Machine;

use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::state::ClusterState;

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    if state.installed.is_none() {
        return Proposal::default();
    }
    let membership = state.membership();
    let is_out = |machine: &&Machine| membership.is_of_etcd(machine) && membership.left_at(machine).is_some();
    let live = state.live.iter().map(|machine| machine.machine);
    let out = live.filter(is_out).cloned().map(Box::new);
    Proposal::actions(out.map(Action::DeleteMachine).collect())
}
