//! What is planned for a cluster, and whether it may begin.

use crds::Reason;
use crds::cluster_deployment::RolloutPlan;

use super::windows::{self, Windows};
use super::{Closed, Rollout, approval, plan};
use crate::cluster_deployment::removals;
use crate::cluster_deployment::state::ClusterState;
use crate::etcd::{self, Finding};
use crate::moment::day_and_clock;

/// By what is due.
pub(in crate::cluster_deployment) fn look(state: &ClusterState<'_>) -> Rollout {
    let wishes = plan::wishes(state);
    let approval = approval::read(state, &wishes);
    let unapproved = (!wishes.is_empty()).then(|| approval.missing(state)).flatten();
    let plan =
        plan::plan(state).map(|plan| RolloutPlan { digest: approval.digest, approved: approval.approved, ..plan });
    Rollout { plan, unapproved, out_of_hours: out_of_hours(state), unwell: unwell(state) }
}

/// So many machines are sick at once, or etcd's data is so, that one more machine is too many.
fn unwell(state: &ClusterState<'_>) -> Option<Closed> {
    let waits = |reason, why: &str| Closed {
        reason,
        why: format!("waits for the cluster to be well: {why}"),
        passes: true,
        opens: None,
    };
    let sick = || removals::held(state.deployment).map(|why| waits(Reason::TooManyUnhealthy, why));
    let grave = state.etcd_status().as_ref().and_then(etcd::finding).filter(Finding::is_grave);
    grave.map(|finding| waits(finding.reason, &finding.message)).or_else(sick)
}

fn out_of_hours(state: &ClusterState<'_>) -> Option<Closed> {
    match windows::look(state) {
        Windows::Any | Windows::Open => None,
        Windows::Closed { opens } => Some(Closed {
            reason: Reason::WaitingForWindow,
            why: format!("waits for the maintenance window that opens at {}", day_and_clock(opens)),
            passes: true,
            opens: Some(opens),
        }),
        Windows::Refused { reason, message } => Some(Closed { reason, why: message, passes: false, opens: None }),
    }
}
