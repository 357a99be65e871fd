//! Says in the condition `MaintenanceWindowsValid` whether the maintenance windows can be what is wanted.

use crds::Reason;
use crds::conditions::Statement;
use crds::names::condition;

use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::rollout::windows::{self, Windows};
use crate::cluster_deployment::state::ClusterState;
use crate::message::{count, cut};

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let stated = |status: bool, reason: Reason, message: String| {
        Some(Statement::new(condition::MAINTENANCE_WINDOWS_VALID, Some(status), reason, cut(message)))
    };
    let statement = match windows::look(state) {
        Windows::Any => None,
        Windows::Refused { reason, message } => {
            stated(false, reason, format!("{message}; until then no machine is disrupted for a change"))
        }
        // Not when: an object that has converged is not written again each time one opens.
        Windows::Open | Windows::Closed { .. } => {
            let number = state.deployment.spec.rollout.windows.len();
            let message = format!("machines are disrupted for changes in {} only", count(number, "maintenance window"));
            stated(true, Reason::Scheduled, message)
        }
    };
    Proposal::default().condition(condition::MAINTENANCE_WINDOWS_VALID, statement)
}
