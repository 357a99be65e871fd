//! How far the keys are: what they wait for, what fetches them, and what becomes of them.

use crds::backup::{FetchedBackup, KeysFetched};
use crds::names::{fetched_keys_secret, label, pki_secret};
use crds::references::LocalRef;
use crds::{BackupStorage, EtcdBackup, ObjectExt, commands};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;

use crate::backup_storage::usable;
use crate::key_transfer::{KeyTransfer, KeysSeen, Receiver, RestoringSeen, job_name, key_transfer};
use crate::message::quote;
use crate::moment::{after, clock};
use crate::storage_job::{Progress, progress};

/// From one attempt that failed to the next.
const INTERVAL_SECONDS: i64 = 60;

/// How far they are. The sentences say what is waited for, or done.
pub(crate) enum KeyProgress {
    /// The backup, its storage or the identity is not to be had yet.
    Waits(String),
    /// They are to be fetched.
    Begin(Box<KeyTransfer>, String),
    /// A Job fetches them.
    Fetching(String),
    /// They were not fetched, and are tried again at this time: what was left is removed then.
    Failed(String, Timestamp),
    /// What was fetched is to become the object's Secret.
    Take(String),
    /// The object has them: of this backup, in the storage of this name.
    InPlace(Box<FetchedBackup>, LocalRef),
    /// The object has others: nothing is done.
    Differ(String),
}

/// How far the keys of the backup are that an object begins with.
pub(crate) fn key_progress(receiver: &Receiver<'_>, seen: &RestoringSeen, now: Timestamp) -> KeyProgress {
    let (of_backup, location) = match place(receiver, seen) {
        Ok(place) => place,
        Err(message) => return KeyProgress::Waits(message),
    };
    let name = job_name(receiver, &location);
    match seen.jobs.iter().find(|job| job.name() == name) {
        Some(job) => outcome(receiver, seen, job, of_backup, now),
        None => begin(receiver, seen, of_backup, &location),
    }
}

/// The storage, and the backup's directory in it; or what it waits for.
fn place<'a>(receiver: &Receiver<'_>, seen: &'a RestoringSeen) -> Result<(&'a BackupStorage, String), String> {
    let source = &receiver.from.source;
    let (storage, location) = match (&source.stored, &source.backup_ref) {
        (Some(stored), _) => (&stored.storage_ref.name, stored.location.clone()),
        (None, Some(reference)) => {
            let (name, kind) = (&reference.name, receiver.kind);
            let Some(backup) = &seen.backup else {
                return Err(format!("EtcdBackup {name} is not there: make it, or delete this {kind}"));
            };
            let Some(content) = backup.good() else {
                return Err(format!("EtcdBackup {name} {}", not_good(backup, kind)));
            };
            (&backup.spec.storage_ref.name, content.location.clone())
        }
        (None, None) => return Err(format!("{}.source names no backup", receiver.field)),
    };
    let of_backup = usable(storage, seen.storage.as_ref()).map_err(|unusable| quote(unusable.message))?;
    Ok((of_backup, location))
}

/// Why it is no backup to begin with.
fn not_good(backup: &EtcdBackup, kind: &str) -> String {
    match backup.status.as_ref().is_some_and(|status| status.damaged.is_some()) {
        true => format!(
            "is not what was stored, as its condition Verified says: delete this {kind}, and make it with another backup, or \
             with this one by source.stored"
        ),
        false => "has not succeeded: it waits until it has".to_owned(),
    }
}

fn begin(receiver: &Receiver<'_>, seen: &RestoringSeen, of_backup: &BackupStorage, location: &str) -> KeyProgress {
    let identity = &receiver.from.identity_ref;
    if !seen.identity {
        let (name, field) = (&identity.name, receiver.field);
        return KeyProgress::Waits(format!(
            "Secret {name} of {field}.identityRef is not there, or lacks the key {}: make it, as age-keygen wrote it",
            crds::etcd_restore::IDENTITY_KEY
        ));
    }
    match key_transfer(receiver, seen, of_backup, location, identity) {
        Err(problem) => KeyProgress::Waits(problem.message),
        Ok(transfer) => KeyProgress::Begin(Box::new(transfer), format!("fetches the keys of the backup at {location}")),
    }
}

/// What came of a Job.
fn outcome(
    receiver: &Receiver<'_>,
    seen: &RestoringSeen,
    job: &Job,
    of_backup: &BackupStorage,
    now: Timestamp,
) -> KeyProgress {
    let why = match progress(job, &seen.pods, label::RESTORE_FROM) {
        Progress::UnderWay(trouble) => {
            let trouble = trouble.map(|trouble| format!(": {trouble}")).unwrap_or_default();
            return KeyProgress::Fetching(format!("Job {} fetches the keys of the backup{trouble}", job.name()));
        }
        Progress::Ended(code, said) => match serde_json::from_str::<KeysFetched>(&said) {
            Ok(KeysFetched { backup: Some(fetched), .. }) => {
                return taken(receiver, seen, job, fetched, of_backup, now);
            }
            Ok(failed) => failed.message.unwrap_or_else(|| "it did not say why".into()),
            Err(_) => format!("the executor's Pod ended with code {code}: {said}"),
        },
        Progress::NotStarted(why) => format!("the executor's Pod did not come up in time: {why}"),
    };
    failed(job, why, now)
}

/// An attempt that failed is followed by another one.
fn failed(job: &Job, why: String, now: Timestamp) -> KeyProgress {
    let at = after(ended(job).unwrap_or(now), SignedDuration::from_secs(INTERVAL_SECONDS));
    let message = format!("the keys of the backup were not fetched: {}; tried again at {}", quote(why), clock(at));
    KeyProgress::Failed(message, at)
}

fn ended(job: &Job) -> Option<Timestamp> {
    let status = job.status.as_ref()?;
    let failed = status.conditions.iter().flatten().find(|condition| condition.type_ == "Failed");
    let failed = failed.and_then(|condition| condition.last_transition_time.as_ref());
    status.completion_time.as_ref().or(failed).map(|at| at.0)
}

/// The keys become the object's; those that it has are never replaced.
fn taken(
    receiver: &Receiver<'_>,
    seen: &RestoringSeen,
    job: &Job,
    fetched: FetchedBackup,
    of_backup: &BackupStorage,
    now: Timestamp,
) -> KeyProgress {
    let (secret, transfer) = (pki_secret(receiver.name()), fetched_keys_secret(receiver.name()));
    match &seen.keys {
        KeysSeen::InPlace => KeyProgress::InPlace(Box::new(fetched), LocalRef::new(of_backup.name())),
        KeysSeen::Fetched => KeyProgress::Take(format!("the keys of the backup become Secret {secret}")),
        KeysSeen::Differ if receiver.is_in_place => KeyProgress::Differ(format!(
            "what is in backup {} is encrypted with a key that Secret {secret} does not have any more, since the key was rotated: \
             it can be restored into a new KarmadaDeployment, with spec.restoreFrom, which gets the backup's keys",
            fetched.backup
        )),
        KeysSeen::Differ => {
            let of =
                fetched.plane.map_or(format!("cluster {}", fetched.cluster), |plane| format!("plane {}", plane.name));
            KeyProgress::Differ(format!(
                "Secret {secret} is there with other keys than backup {} of {of}: nothing is done; if nobody needs it, delete it, \
                 and the backup's keys take its place: {}",
                fetched.backup,
                commands::delete_secret(receiver.namespace(), &secret)
            ))
        }
        KeysSeen::Unusable(why) => failed(job, format!("what Secret {transfer} holds is of no use: {why}"), now),
        KeysSeen::Absent => failed(job, format!("Secret {transfer} holds none"), now),
    }
}
