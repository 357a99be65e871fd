//! `NetworkReady`: whether Pods of the cluster's machines reach each other.

use crds::Conditions;
use crds::Reason;
use crds::conditions::Statement;
use crds::names::condition;
use crds::step::Role;

use super::component_status::control_plane;
use super::proposal::Round;
use super::state::ClusterState;
use super::up_to_date::NOT_INSTALLED;
use crate::cluster_machine::ClusterMachine;
use crate::message::{count, cut};

/// Machines that the condition names at most; their number is always told.
const NAMED: usize = 5;

pub(super) fn network(state: &ClusterState<'_>, round: &Round) -> Statement {
    if state.installed.is_none() {
        return Statement::new(condition::NETWORK_READY, false, Reason::NotInstalled, NOT_INSTALLED);
    }
    if let Some(message) = cut_off(state) {
        return Statement::new(condition::NETWORK_READY, false, Reason::NodesCutOff, cut(message));
    }
    let part = control_plane(state, Role::ControlPlane, round);
    let message = if part.status == Some(true) {
        format!("the control plane's nodes are Ready: {}", part.message)
    } else {
        part.message
    };
    Statement::new(
        condition::NETWORK_READY,
        part.status,
        if part.status == Some(true) { Reason::NodesReady } else { Reason::NodesNotReady },
        cut(message),
    )
}

/// The machines that say that their Pods do not reach others, or the DNS; each with what it says.
fn cut_off(state: &ClusterState<'_>) -> Option<String> {
    let said = |member: &ClusterMachine<'_>| {
        let network = member.machine.condition(condition::NETWORK_READY)?;
        (network.status == "False").then(|| format!("{}: {}", member.title(), network.message))
    };
    let mut all: Vec<String> = state.live.iter().filter_map(said).collect();
    all.sort();
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    let named = all.join("; ");
    match more {
        _ if all.is_empty() => None,
        0 => Some(named),
        more => Some(format!("{named}; and {}", count(more, "more machine"))),
    }
}
