//! What must be so before members are defragmented. The step looks at all of them again, before each.

use crds::Reason;

use crate::cluster_deployment::state::{ClusterMachine, ClusterState};
use crate::etcd::Finding;
use crate::etcd::defragmentation::{Cause, executor_of, member_in_the_way};

/// What it waits for: it is never made beside anything else, nor with a member away. An etcd that accepts no writes
/// makes all Nodes look silent, so there the step alone looks at the members.
pub(super) fn why_not_yet(state: &ClusterState<'_>, cause: &Cause, finding: Option<&Finding>) -> Option<String> {
    if let Some(run) = state.active.first() {
        return Some(format!("run {} is under way", run.metadata.name.as_deref().unwrap_or_default()));
    }
    let is_full = finding.is_some_and(|finding| finding.reason == Reason::EtcdNoSpace);
    if is_full || matches!(cause, Cause::NoSpace(_)) {
        return None;
    }
    let waits = state.waits_for_api().or_else(|| state.waits_for_etcd());
    waits.or_else(|| member_in_the_way(&state.membership(), &state.live))
}

/// The machine that does it.
pub(super) fn executor<'a>(state: &ClusterState<'a>, number: i32) -> Option<ClusterMachine<'a>> {
    executor_of(state.etcd_machines(), number)
}
