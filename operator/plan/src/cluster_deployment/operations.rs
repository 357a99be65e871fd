//! Operations: what may be under way with a cluster, as data. Each is one file of one shape: it looks at the state and
//! proposes. The table says their order, what each needs, and the lane that it is in; nothing here knows what any of
//! them does.

mod access;
mod compare_machines;
pub(super) mod compare_store;
pub(super) mod configure;
mod defragment_etcd;
mod end_drains;
mod fence_returned;
mod hold_for_restore;
pub(super) mod hold_runs;
mod install;
mod join_control_plane;
mod join_workers;
mod look_again;
mod machine_sets;
mod observe_certificates;
mod observe_etcd;
mod own_addon;
mod play_drain_hooks;
mod prefetch;
mod prepare_workers;
mod quorum_loss;
mod rebuild;
mod remediate;
mod remember_orphans;
mod remove_etcd_member;
pub(super) mod renew_certificates;
mod reopen_lock;
mod repair_drift;
mod replace_members;
mod report_backups;
mod report_certificates;
mod report_drift;
mod report_etcd;
mod report_windows;
pub(super) mod reset;
mod restore_from;
pub(super) mod rotate_authorities;
mod update_etcd_endpoints;
mod update_load_balancers;
mod upgrade_control_plane;
mod upgrade_workers;
mod withdraw_runs;

use super::lane::{Lane, Needs};
use super::proposal::{Proposal, Round};
use super::state::ClusterState;

/// One row of the table.
struct Operation {
    lane: Lane,
    needs: Needs,
    /// What it wants now; pure, from the state and what came before it in the round.
    propose: fn(&ClusterState<'_>, &Round) -> Proposal,
    /// Names of ended runs by which it decides: history keeps them.
    keeps: fn(&ClusterState<'_>) -> Vec<String>,
}

impl Operation {
    const fn new(lane: Lane, needs: Needs, propose: fn(&ClusterState<'_>, &Round) -> Proposal) -> Self {
        Self { lane, needs, propose, keeps: |_| Vec::new() }
    }

    const fn keeping(self, keeps: fn(&ClusterState<'_>) -> Vec<String>) -> Self {
        Self { keeps, ..self }
    }
}

/// All of them, in their order.
const OPERATIONS: &[Operation] = &[
    Operation::new(Lane::Lock, Needs::Nothing, reopen_lock::propose).keeping(reopen_lock::keeps),
    Operation::new(Lane::Lock, Needs::Nothing, compare_store::propose),
    Operation::new(Lane::Fencing, Needs::Lock, fence_returned::propose),
    Operation::new(Lane::Recovery, Needs::Nothing, hold_for_restore::propose).keeping(hold_for_restore::keeps),
    Operation::new(Lane::Recovery, Needs::Nothing, rebuild::propose).keeping(rebuild::keeps),
    Operation::new(Lane::Recovery, Needs::Nothing, restore_from::propose),
    Operation::new(Lane::Install, Needs::Spec, access::propose),
    Operation::new(Lane::Install, Needs::Spec, install::propose),
    // Before a lost majority is decided on: certificates that have ended look like one.
    Operation::new(Lane::ControlPlane, Needs::Lock, renew_certificates::propose).keeping(renew_certificates::keeps),
    Operation::new(Lane::ControlPlane, Needs::Lock, replace_members::propose),
    Operation::new(Lane::ControlPlane, Needs::Lock, quorum_loss::propose).keeping(quorum_loss::keeps),
    Operation::new(Lane::ControlPlane, Needs::Lock, remove_etcd_member::propose).keeping(remove_etcd_member::keeps),
    Operation::new(Lane::ControlPlane, Needs::Lock, update_etcd_endpoints::propose)
        .keeping(update_etcd_endpoints::keeps),
    Operation::new(Lane::ControlPlane, Needs::Lock, update_load_balancers::propose),
    Operation::new(Lane::ControlPlane, Needs::Lock, defragment_etcd::propose).keeping(defragment_etcd::keeps),
    // Before an upgrade, which waits for it.
    Operation::new(Lane::ControlPlane, Needs::Spec, rotate_authorities::propose),
    // Before anything joins: what joins while it is under way would have a kubelet newer than the API servers.
    Operation::new(Lane::ControlPlane, Needs::Spec, upgrade_control_plane::propose)
        .keeping(upgrade_control_plane::keeps),
    Operation::new(Lane::ControlPlane, Needs::Spec, join_control_plane::propose),
    Operation::new(Lane::ControlPlane, Needs::Spec, configure::propose).keeping(configure::keeps),
    Operation::new(Lane::ControlPlane, Needs::Spec, repair_drift::propose).keeping(repair_drift::keeps),
    Operation::new(Lane::Workers, Needs::Spec, prepare_workers::propose),
    Operation::new(Lane::Workers, Needs::Spec, join_workers::propose),
    Operation::new(Lane::Workers, Needs::Spec, prefetch::propose).keeping(prefetch::keeps),
    Operation::new(Lane::Workers, Needs::Spec, upgrade_workers::propose),
    Operation::new(Lane::Workers, Needs::Lock, end_drains::propose),
    Operation::new(Lane::Remediation, Needs::Nothing, remediate::propose).keeping(remediate::keeps),
    Operation::new(Lane::Remediation, Needs::Nothing, observe_etcd::propose).keeping(observe_etcd::keeps),
    Operation::new(Lane::Remediation, Needs::Lock, observe_certificates::propose).keeping(observe_certificates::keeps),
    Operation::new(Lane::Install, Needs::Spec, machine_sets::propose),
    Operation::new(Lane::Install, Needs::Spec, own_addon::propose),
    Operation::new(Lane::Leaving, Needs::Lock, play_drain_hooks::propose),
    Operation::new(Lane::Leaving, Needs::Lock, reset::propose),
    Operation::new(Lane::Leaving, Needs::Lock, withdraw_runs::propose),
    Operation::new(Lane::Records, Needs::Nothing, remember_orphans::propose),
    Operation::new(Lane::Records, Needs::Nothing, report_backups::propose),
    Operation::new(Lane::Records, Needs::Nothing, report_etcd::propose),
    Operation::new(Lane::Records, Needs::Nothing, report_certificates::propose),
    Operation::new(Lane::Records, Needs::Nothing, report_windows::propose),
    Operation::new(Lane::Records, Needs::Nothing, report_drift::propose),
    Operation::new(Lane::Records, Needs::Nothing, look_again::propose),
    Operation::new(Lane::Records, Needs::Nothing, hold_runs::propose),
    // After all that may begin: it begins only where nothing else does.
    Operation::new(Lane::Records, Needs::Nothing, compare_machines::propose).keeping(compare_machines::keeps),
];

/// Asks them all.
pub(super) fn propose(state: &ClusterState<'_>, mut round: Round) -> Round {
    for operation in OPERATIONS {
        if !round.is_taken(operation.lane) {
            let proposal = (operation.propose)(state, &round);
            round.take(operation.lane, operation.needs, proposal);
        }
    }
    round
}

/// Names of ended runs by which any of them decides.
pub(super) fn kept(state: &ClusterState<'_>) -> impl Iterator<Item = String> {
    OPERATIONS.iter().flat_map(|operation| (operation.keeps)(state))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_operation_has_its_row() {
        crate::testing::operations::every_file_has_its_row("cluster_deployment");
    }
}
