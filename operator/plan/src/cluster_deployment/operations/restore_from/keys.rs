//! The keys of the backup: fetched by a Job, and taken over unless the cluster has others.

use crds::Reason;
use crds::backup::{FetchedBackup, KeysFetched};
use crds::cluster_deployment::{RestoreFrom, RestoredFrom};
use crds::names::{fetched_keys_secret, label, pki_secret};
use crds::references::LocalRef;
use crds::{BackupStorage, EtcdBackup, ObjectExt, commands};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;

use super::settling::{settle, waits};
use crate::Next;
use crate::backup_storage::usable;
use crate::cluster_deployment::action::Action;
use crate::cluster_deployment::key_transfer::{KeysSeen, job_name, key_transfer};
use crate::cluster_deployment::proposal::{Proposal, Severity};
use crate::cluster_deployment::state::ClusterState;
use crate::message::quote;
use crate::moment::{after, clock};
use crate::storage_job::{Progress, progress};

/// From one attempt that failed to the next.
const INTERVAL_SECONDS: i64 = 60;
/// How often a Job is looked at.
const PERIOD_SECONDS: u64 = 3;

pub(super) fn propose(state: &ClusterState<'_>, from: &RestoreFrom, may_work: bool) -> Proposal {
    let (of_backup, location) = match place(state, from) {
        Ok(place) => place,
        Err(message) => return waiting(message),
    };
    let name = job_name(state.deployment, &location);
    match state.observed.restoring.jobs.iter().find(|job| job.name() == name) {
        Some(job) => outcome(state, job, of_backup, may_work),
        None => begin(state, from, of_backup, &location, may_work),
    }
}

/// The storage, and the backup's directory in it; or what it waits for.
fn place<'a>(state: &ClusterState<'a>, from: &RestoreFrom) -> Result<(&'a BackupStorage, String), String> {
    let seen = state.observed.restoring;
    let (storage, location) = match (&from.source.stored, &from.source.backup_ref) {
        (Some(stored), _) => (&stored.storage_ref.name, stored.location.clone()),
        (None, Some(reference)) => {
            let name = &reference.name;
            let Some(backup) = &seen.backup else {
                return Err(format!("EtcdBackup {name} is not there: make it, or delete this ClusterDeployment"));
            };
            let Some(content) = backup.good() else {
                return Err(format!("EtcdBackup {name} {}", not_good(backup)));
            };
            (&backup.spec.storage_ref.name, content.location.clone())
        }
        (None, None) => return Err("spec.restoreFrom.source names no backup".to_owned()),
    };
    let of_backup = usable(storage, seen.storage.as_ref()).map_err(|unusable| quote(unusable.message))?;
    Ok((of_backup, location))
}

/// Why it is no backup to begin with.
fn not_good(backup: &EtcdBackup) -> &'static str {
    match backup.status.as_ref().is_some_and(|status| status.damaged.is_some()) {
        true => {
            "is not what was stored, as its condition Verified says: delete this ClusterDeployment, and make it with \
             another backup, or with this one by source.stored"
        }
        false => "has not succeeded: it waits until it has",
    }
}

fn begin(
    state: &ClusterState<'_>,
    from: &RestoreFrom,
    of_backup: &BackupStorage,
    location: &str,
    may_work: bool,
) -> Proposal {
    let seen = state.observed.restoring;
    if !seen.identity {
        let name = &from.identity_ref.name;
        return waiting(format!(
            "Secret {name} of spec.restoreFrom.identityRef is not there, or lacks the key {}: make it, as age-keygen wrote it",
            crds::etcd_restore::IDENTITY_KEY
        ));
    }
    match key_transfer(state.deployment, seen, of_backup, location, &from.identity_ref) {
        Err(problem) => waiting(problem.message),
        Ok(transfer) => {
            let message = format!("fetches the keys of the backup at {location}");
            let proposal = fetching(message);
            if may_work { proposal.and(Action::FetchKeys(Box::new(transfer))) } else { proposal }
        }
    }
}

/// What came of a Job.
fn outcome(state: &ClusterState<'_>, job: &Job, of_backup: &BackupStorage, may_work: bool) -> Proposal {
    let why = match progress(job, &state.observed.restoring.pods, label::RESTORE_FROM) {
        Progress::UnderWay(trouble) => {
            let trouble = trouble.map(|trouble| format!(": {trouble}")).unwrap_or_default();
            return fetching(format!("Job {} fetches the keys of the backup{trouble}", job.name()));
        }
        Progress::Ended(code, said) => match serde_json::from_str::<KeysFetched>(&said) {
            Ok(KeysFetched { backup: Some(fetched), .. }) => return take(state, job, &fetched, of_backup, may_work),
            Ok(failed) => failed.message.unwrap_or_else(|| "it did not say why".into()),
            Err(_) => format!("the executor's Pod ended with code {code}: {said}"),
        },
        Progress::NotStarted(why) => format!("the executor's Pod did not come up in time: {why}"),
    };
    again(state, job, why, may_work)
}

/// An attempt that failed is followed by another one.
fn again(state: &ClusterState<'_>, job: &Job, why: String, may_work: bool) -> Proposal {
    let at = after(ended(job).unwrap_or(state.observed.now), SignedDuration::from_secs(INTERVAL_SECONDS));
    let message = format!("the keys of the backup were not fetched: {}; tried again at {}", quote(why), clock(at));
    let proposal = waits(Reason::KeysNotFetched, message, Severity::Failing);
    match at <= state.observed.now && may_work {
        true => Proposal { requeue: Next::after_seconds(PERIOD_SECONDS), ..proposal }.and(Action::DropKeyTransfer),
        false => Proposal { pending: true, ..proposal }.at(state, at),
    }
}

fn ended(job: &Job) -> Option<Timestamp> {
    let status = job.status.as_ref()?;
    let failed = status.conditions.iter().flatten().find(|condition| condition.type_ == "Failed");
    let failed = failed.and_then(|condition| condition.last_transition_time.as_ref());
    status.completion_time.as_ref().or(failed).map(|at| at.0)
}

/// The keys become the cluster's; those that it has are never replaced.
fn take(
    state: &ClusterState<'_>,
    job: &Job,
    fetched: &FetchedBackup,
    of_backup: &BackupStorage,
    may_work: bool,
) -> Proposal {
    let secret = pki_secret(&state.name);
    match &state.observed.restoring.keys {
        KeysSeen::InPlace => settle(restored_from(fetched, LocalRef::new(of_backup.name()))),
        KeysSeen::Fetched => {
            let proposal = fetching(format!("the keys of the backup become Secret {secret}"));
            if may_work { proposal.and(Action::TakeKeys) } else { proposal }
        }
        KeysSeen::Differ => {
            let message = format!(
                "Secret {secret} is there with other keys than backup {} of cluster {}: nothing is done; if nobody needs it, delete \
                 it, and the backup's keys take its place: {}",
                fetched.backup,
                fetched.cluster,
                commands::delete_secret(state.deployment.namespace(), &secret)
            );
            let proposal = waits(Reason::KeysDiffer, message, Severity::Stalled);
            Proposal { requeue: Next::after_seconds(30), ..proposal }
        }
        KeysSeen::Unusable(why) => {
            again(state, job, format!("what Secret {} holds is of no use: {why}", transfer(state)), may_work)
        }
        KeysSeen::Absent => again(state, job, format!("Secret {} holds none", transfer(state)), may_work),
    }
}

fn transfer(state: &ClusterState<'_>) -> String {
    fetched_keys_secret(&state.name)
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

fn waiting(message: String) -> Proposal {
    let proposal = waits(Reason::WaitingForBackup, message, Severity::Progressing);
    Proposal { requeue: Next::after_seconds(PERIOD_SECONDS), pending: true, ..proposal }
}

fn fetching(message: String) -> Proposal {
    let proposal = waits(Reason::FetchingKeys, message, Severity::Progressing);
    Proposal { requeue: Next::after_seconds(PERIOD_SECONDS), pending: true, ..proposal }
}
