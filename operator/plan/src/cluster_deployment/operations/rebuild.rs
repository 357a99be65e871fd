//! Rebuilds a cluster all of whose machines are lost. That is reported; and where `spec.recovery` wishes it, the
//! machines are forgotten, others take their places, and the cluster is installed anew under its name and with its
//! keys.
//!
//! Lost is what nobody has answered for: neither the API nor any machine, for long enough, in probes of all of them.
//! What is of the past from then on, [`past`] says.

mod asked;
mod forgetting;
mod lost;
mod silence;

use crds::conditions::Statement;
use crds::names::condition;

use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::state::{ClusterMachine, ClusterState, past};
use crate::message::cut;
use lost::machines;

/// That a cluster is lost is seen, and its machines are forgotten, also while its lock is closed: dead machines cannot
/// tell what would open it, and none of their tokens is of use to others.
pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    let (conditions, proposal) = match (past::begun(state.observed), state.silent_since()) {
        (Some(since), _) => forgetting::goes_on(state, since, round.may_work()),
        (None, Some(since)) if state.installed.is_some() => silence::look(state, since, round),
        _ => Default::default(),
    };
    [condition::MACHINES_LOST, condition::REBUILDING].into_iter().fold(proposal, |proposal, type_| {
        let stated = conditions.iter().find(|statement| statement.type_ == type_);
        let statement =
            stated.map(|statement| Statement { message: cut(statement.message.clone()), ..statement.clone() });
        proposal.condition(type_, statement)
    })
}

/// Runs by which it is decided whether the cluster is lost.
pub(super) fn keeps(state: &ClusterState<'_>) -> Vec<String> {
    let held = machines(state).filter_map(ClusterMachine::host_name).collect();
    state.silent_since().map(|since| asked::needed(state, since, &held)).unwrap_or_default()
}
