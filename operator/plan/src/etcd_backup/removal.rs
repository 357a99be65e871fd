//! What happens to a backup with `deletionPolicy: Delete` that is being deleted: what it has stored is removed first,
//! by a Job, unless a person lets it go without that.

use crds::backup::BackupRemoval;
use crds::commands::{self, Target};
use crds::etcd_backup::BackupContent;
use crds::names::{annotation, label};
use crds::references::controller_ref;
use crds::{BackupStorage, ObjectExt, PlaybookRun, Reason};
use jiff::SignedDuration;
use k8s_openapi::api::batch::v1::Job;

use super::needed::needed_by;
use super::observed::Observed;
use super::run;
use crate::approval::{self, What};
use crate::attempts;
use crate::backup_storage::usable;
use crate::inputs::storage;
use crate::message::{cut, quote};
use crate::moment::{after, clock};
use crate::storage_job::{Beside, Progress, StorageJob, attempt_name, progress, storage_job};

/// From one attempt to the next.
const INTERVAL_SECONDS: i64 = 120;
/// How long one may take, the start of its Pod included.
const DEADLINE_SECONDS: i64 = 600;

/// How far its removal is.
pub(super) enum Removal<'a> {
    /// Nothing of it is in the storage, or it is let go as it is.
    Done,
    /// This run is taking it, and is stopped first.
    Stops(&'a PlaybookRun),
    /// It waits, and for what.
    Waits(Reason, String),
    /// The Job begins now.
    Begins(Box<Job>),
    /// The Job is at it.
    UnderWay(String),
    /// This attempt has failed: why.
    Failed(String),
    /// The next one is not due yet.
    Retries,
    /// Nothing is tried until somebody acts: why.
    Stuck(String),
}

pub(super) fn removal<'a>(observed: &Observed<'a>) -> Removal<'a> {
    let tried = run::attempts(observed);
    if let Some(run) = tried.iter().find(|run| !attempts::is_over(run)) {
        return Removal::Stops(run);
    }
    let Some(content) = content(observed, &tried) else {
        return Removal::Done;
    };
    if approval::is_given(&observed.backup.metadata, &to_leave(observed, &content)) {
        return Removal::Done;
    }
    let Some(restores) = observed.restores else {
        let message = "an EtcdRestore or a ClusterDeployment cannot be decoded, and may be about this backup: correct or \
                       delete it";
        return Removal::Waits(Reason::BackupInUse, message.to_owned());
    };
    if let Some(who) = needed_by(observed.backup, restores, observed.deployments) {
        let message = format!("{who} is about this backup, and has not ended its restore");
        return Removal::Waits(Reason::BackupInUse, message);
    }
    let current = job_name(observed);
    if let Some(job) = observed.jobs.iter().find(|job| job.name() == current) {
        return outcome(observed, job, &content);
    }
    match storage_of(observed) {
        Err(waits) => waits,
        Ok(_) if is_too_soon(observed) => Removal::Retries,
        Ok(of_backup) => begin(observed, of_backup, &content),
    }
}

/// What it has stored, whatever was written down of it.
fn content(observed: &Observed<'_>, tried: &[&PlaybookRun]) -> Option<BackupContent> {
    let written = observed.backup.status.as_ref().and_then(|status| status.backup.as_ref());
    let mut made = tried.iter().filter_map(|run| run.status.as_ref()?.backup.as_ref());
    written.or_else(|| made.next()).cloned()
}

/// A name that follows from the last attempt: everyone who sees the same makes the same.
pub(super) fn job_name(observed: &Observed<'_>) -> String {
    let backup = observed.backup;
    let last = backup.status.as_ref().and_then(|status| status.removal_tried_at.as_ref());
    attempt_name("remove", &backup.metadata, last)
}

/// The storage, if requests can be made to it. One that is not there, or was not reached, may stay so.
fn storage_of<'a>(observed: &Observed<'a>) -> Result<&'a BackupStorage, Removal<'a>> {
    usable(&observed.backup.spec.storage_ref.name, observed.storage).map_err(|unusable| match unusable.reason {
        Reason::StorageNotProbed => Removal::Waits(Reason::RemovingBackup, unusable.message),
        _ => Removal::Stuck(quote(unusable.message)),
    })
}

fn is_too_soon(observed: &Observed<'_>) -> bool {
    let status = observed.backup.status.as_ref();
    let tried = status.and_then(|status| status.removal_tried_at.as_ref());
    tried.is_some_and(|tried| after(tried.0, SignedDuration::from_secs(INTERVAL_SECONDS)) > observed.now)
}

fn begin<'a>(observed: &Observed<'a>, of_backup: &BackupStorage, content: &BackupContent) -> Removal<'a> {
    let inputs = match storage(of_backup, observed.seen) {
        Ok(inputs) => inputs,
        Err(problem) => return Removal::Stuck(problem.message),
    };
    let backup = observed.backup;
    let arguments = ["--location", &content.location, "--backup", backup.name()].map(str::to_owned);
    Removal::Begins(Box::new(storage_job(&StorageJob {
        name: job_name(observed),
        label: (label::BACKUP, backup.name()),
        owner: controller_ref(of_backup),
        storage: of_backup,
        seen: observed.seen,
        inputs: &inputs,
        image: observed.image,
        command: "remove-backup",
        arguments: arguments.into(),
        deadline_seconds: DEADLINE_SECONDS,
        beside: Beside::default(),
    })))
}

/// What came of a Job.
fn outcome<'a>(observed: &Observed<'a>, job: &Job, content: &BackupContent) -> Removal<'a> {
    let why = match progress(job, observed.pods, label::BACKUP) {
        Progress::UnderWay(trouble) => {
            let trouble = trouble.map(|trouble| format!(": {trouble}")).unwrap_or_default();
            return Removal::UnderWay(format!("Job {} removes {}{trouble}", job.name(), content.location));
        }
        Progress::Ended(code, said) => match serde_json::from_str::<BackupRemoval>(&said) {
            Ok(removal) if removal.removed => return Removal::Done,
            Ok(removal) => removal.message.unwrap_or_else(|| "it did not say why".into()),
            Err(_) => format!("the executor's Pod ended with code {code}: {said}"),
        },
        Progress::NotStarted(why) => format!("the executor's Pod did not come up in time: {why}"),
    };
    let next = after(observed.now, SignedDuration::from_secs(INTERVAL_SECONDS));
    Removal::Failed(format!("{}; tried again at {}", quote(why), clock(next)))
}

/// The approval to let it go, and what it has stored where it is.
fn to_leave(observed: &Observed<'_>, content: &BackupContent) -> String {
    approval::value(What::Leave, &observed.backup.metadata, &[&content.location])
}

/// Why it is still there, and what to type to let it go.
pub(super) fn ask(observed: &Observed<'_>, why: &str) -> String {
    let tried = run::attempts(observed);
    let Some(content) = content(observed, &tried) else {
        return cut(why.to_owned());
    };
    let metadata = &observed.backup.metadata;
    let value = approval::to_write(metadata, &to_leave(observed, &content));
    let command = commands::annotate(Target::EtcdBackup, metadata, annotation::APPROVE, value);
    cut(format!(
        "its backup cannot be removed from the storage: {why}; to let it go, and leave {} where it is: {command}",
        content.location
    ))
}
