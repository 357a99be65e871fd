//! Whether a control plane or a machine of etcd may be worked on now.

use crds::step::{Role, Step};

use super::target::Outdated;
use crate::cluster_deployment::state::ClusterState;
use crate::departure::is_healthy;

/// Why nothing is done to a control plane or a machine of etcd now. How an external etcd is reached is brought in any
/// case: without it, the API server may not answer.
pub(super) fn why_not_now(state: &ClusterState<'_>, outdated: &Outdated<'_>) -> Option<String> {
    let membership = state.membership();
    let in_the_way = membership.leaving_in_the_way().or_else(|| membership.run_in_the_way(None));
    if in_the_way.is_some() {
        return in_the_way;
    }
    if outdated.steps().contains(&Step::EtcdEndpoints) {
        return None;
    }
    let mut others = state.live.iter().filter(|machine| machine.machine.spec.role != Role::Worker);
    if let Some(sick) = others.find(|machine| machine.is_provisioned() && !is_healthy(machine.machine)) {
        return Some(format!("waits for {} to be well ({})", sick.title(), sick.says()));
    }
    state.waits_for_etcd().or_else(|| state.waits_for_api())
}
