//! Says whether the cluster's last good backup is young enough, where a schedule is for it.

use crds::names::condition;
use crds::{EtcdBackupSchedule, ObjectExt};

use crate::backed_up::backed_up;
use crate::cluster_deployment::proposal::{Proposal, Round};
use crate::cluster_deployment::state::ClusterState;

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let deployment = state.deployment;
    let is_for = |schedule: &&EtcdBackupSchedule| {
        let labels = deployment.metadata.labels.as_ref();
        state.installed.is_some() && schedule.spec.selects(deployment.name(), labels)
    };
    let schedules = state.observed.schedules.iter().copied().filter(is_for);
    let (statement, next) = match backed_up(schedules, deployment.name(), state.observed.now) {
        Some(said) => (Some(said.statement), said.next),
        None => (None, None),
    };
    let proposal = Proposal::default().condition(condition::BACKED_UP, statement);
    next.into_iter().fold(proposal, |proposal, at| proposal.at(state, at))
}
