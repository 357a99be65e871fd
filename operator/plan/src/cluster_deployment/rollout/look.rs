//! What is planned for a cluster, and whether it may begin.

use crds::Reason;
use crds::cluster_deployment::RolloutPlan;

use super::windows::{self, Windows};
use super::{Closed, Rollout, approval, plan};
use crate::cluster_deployment::state::ClusterState;
use crate::moment::day_and_clock;

/// By what is due.
pub(in crate::cluster_deployment) fn look(state: &ClusterState<'_>) -> Rollout {
    let wishes = plan::wishes(state);
    let approval = approval::read(state, &wishes);
    let unapproved = (!wishes.is_empty()).then(|| approval.missing(state)).flatten();
    let plan =
        plan::plan(state).map(|plan| RolloutPlan { digest: approval.digest, approved: approval.approved, ..plan });
    Rollout { plan, unapproved, out_of_hours: out_of_hours(state) }
}

fn out_of_hours(state: &ClusterState<'_>) -> Option<Closed> {
    match windows::look(state) {
        Windows::Any | Windows::Open => None,
        Windows::Closed { opens } => Some(Closed {
            reason: Reason::WaitingForWindow,
            why: format!("waits for the maintenance window that opens at {}", day_and_clock(opens)),
            opens: Some(opens),
        }),
        Windows::Refused { reason, message } => Some(Closed { reason, why: message, opens: None }),
    }
}
