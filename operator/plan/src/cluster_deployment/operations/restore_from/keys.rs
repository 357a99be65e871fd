//! The keys of the backup: fetched by a Job, and taken over unless the cluster has others.

use crds::Reason;
use crds::backup::FetchedBackup;
use crds::cluster_deployment::{RestoreFrom, RestoredFrom};
use crds::references::LocalRef;

use super::settling::{settle, waits};
use crate::Next;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::proposal::{Proposal, Severity};
use crate::cluster_deployment::state::ClusterState;
use crate::key_progress::{KeyProgress, key_progress};
use crate::key_transfer::Receiver;

/// How often a Job is looked at.
const PERIOD_SECONDS: u64 = 3;

pub(super) fn propose(state: &ClusterState<'_>, from: &RestoreFrom, may_work: bool) -> Proposal {
    let receiver = Receiver::cluster(state.deployment, from);
    match key_progress(&receiver, state.observed.restoring, state.observed.now) {
        KeyProgress::Waits(message) => looked_at_soon(waits(Reason::WaitingForBackup, message, Severity::Progressing)),
        KeyProgress::Fetching(message) => fetching(message),
        KeyProgress::Begin(transfer, message) => {
            let proposal = fetching(message);
            if may_work { proposal.and(Action::FetchKeys(transfer)) } else { proposal }
        }
        KeyProgress::Failed(message, at) => {
            let proposal = waits(Reason::KeysNotFetched, message, Severity::Failing);
            match at <= state.observed.now && may_work {
                true => {
                    Proposal { requeue: Next::after_seconds(PERIOD_SECONDS), ..proposal }.and(Action::DropKeyTransfer)
                }
                false => Proposal { pending: true, ..proposal }.at(state, at),
            }
        }
        KeyProgress::Take(message) => {
            let proposal = fetching(message);
            if may_work { proposal.and(Action::TakeKeys) } else { proposal }
        }
        KeyProgress::InPlace(fetched, storage) => settle(restored_from(&fetched, storage)),
        KeyProgress::Differ(message) => {
            let proposal = waits(Reason::KeysDiffer, message, Severity::Stalled);
            Proposal { requeue: Next::after_seconds(30), ..proposal }
        }
    }
}

fn restored_from(fetched: &FetchedBackup, storage_ref: LocalRef) -> RestoredFrom {
    RestoredFrom {
        backup: fetched.backup.clone(),
        cluster: fetched.cluster.clone(),
        cluster_uid: fetched.cluster_uid.clone(),
        storage_ref,
        location: fetched.location.clone(),
        taken_at: fetched.taken_at.clone(),
        revision: fetched.revision,
        size: fetched.size,
        sha256: fetched.sha256.clone(),
        etcd_version: fetched.etcd_version.clone(),
        kubernetes_version: fetched.kubernetes_version,
        pod_cidr: Some(fetched.pod_cidr.clone()),
        service_cidr: Some(fetched.service_cidr.clone()),
        dns_domain: Some(fetched.dns_domain.clone()),
        approved_at: None,
        restored_at: None,
    }
}

fn fetching(message: String) -> Proposal {
    looked_at_soon(waits(Reason::FetchingKeys, message, Severity::Progressing))
}

fn looked_at_soon(proposal: Proposal) -> Proposal {
    Proposal { requeue: Next::after_seconds(PERIOD_SECONDS), pending: true, ..proposal }
}
