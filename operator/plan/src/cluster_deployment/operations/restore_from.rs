//! Begins a cluster with a backup: its keys first, then, once a person has approved it, its data with the install.
//! Until then no Host is claimed. A cluster that is rebuilt from its newest backup has its keys, and was approved with
//! its strategy.

mod asked;
mod keys;
mod settling;

use crds::Reason;
use crds::cluster_deployment::RestoredFrom;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::approval;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::lane::Lane;
use crate::cluster_deployment::proposal::{Proposal, Round, Severity};
use crate::cluster_deployment::restoring::{self, Source};
use crate::cluster_deployment::state::ClusterState;
use crate::key_transfer::KeysSeen;
use settling::{record, settle, waits};

pub(super) fn propose(state: &ClusterState<'_>, round: &Round) -> Proposal {
    match restoring::source(state) {
        None => done(state),
        // What was begun with the old machines ends first.
        Some(_) if round.is_blocked(Lane::Install) => Proposal::default(),
        Some(Source::Latest(newest)) => match newest.and_then(|backup| restoring::of_backup(state, backup)) {
            _ if restoring::pending(state.deployment).is_some_and(|known| known.cluster_uid == state.uid()) => {
                Proposal::default()
            }
            Some(settled) => settle(settled),
            None => waits(Reason::NoGoodBackup, no_backup(state), Severity::Stalled),
        },
        Some(Source::Given(from)) => match restoring::pending(state.deployment) {
            Some(pending) if state.observed.pki => given(state, pending, round.may_work()),
            _ => keys::propose(state, from, round.may_work()),
        },
    }
}

/// That there is no backup to begin with, and what may be done.
pub(super) fn no_backup(state: &ClusterState<'_>) -> String {
    format!(
        "there is no good EtcdBackup of ClusterDeployment {} (UID {}) in this namespace: nothing is done; bring a machine back, \
         or set spec.recovery.strategy to Rebuild to have the cluster installed empty",
        state.name,
        state.uid()
    )
}

/// The keys are there: what it would be, and whether a person wants it.
fn given(state: &ClusterState<'_>, pending: &RestoredFrom, may_work: bool) -> Proposal {
    if let Some(differences) = restoring::differences(state.deployment, pending) {
        let message = format!(
            "backup {} of cluster {} cannot be restored here: {differences}; delete this ClusterDeployment, and make it so",
            pending.backup, pending.cluster
        );
        return waits(Reason::BackupDoesNotFit, message, Severity::Stalled);
    }
    let left = match state.observed.restoring.keys {
        KeysSeen::Absent => Vec::new(),
        _ if may_work => vec![Action::DropKeyTransfer],
        _ => Vec::new(),
    };
    if pending.approved_at.is_some() {
        return Proposal::actions(left);
    }
    let value = asked::approval(state, pending);
    if approval::is_given(&state.deployment.metadata, &value) {
        return settle(RestoredFrom { approved_at: Some(Time(state.observed.now)), ..pending.clone() });
    }
    let waits = waits(Reason::WaitingForApproval, asked::message(state, pending, &value), Severity::Stalled);
    Proposal { actions: left, ..waits }
}

/// The cluster stands on it.
fn done(state: &ClusterState<'_>) -> Proposal {
    let (Some(installed), Some(pending)) = (&state.installed, restoring::pending(state.deployment)) else {
        return Proposal::default();
    };
    let restored = RestoredFrom { restored_at: Some(installed.clone()), ..pending.clone() };
    Proposal { records: vec![record(restored)], ..Proposal::default() }
}
