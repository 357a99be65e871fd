//! A stored backup is verified once more, from what is stored alone, by a Job. One that cannot be made says nothing of
//! the backup, and is tried again.

mod job;
mod programs;

use crds::backup::VerificationReport;
use crds::etcd_backup::{BackupContent, BackupPhase, Verify};
use crds::names::label;
use crds::{EtcdBackup, ObjectExt};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;

use super::observed::Observed;
use crate::attempts::backoff;
use crate::message::quote;
use crate::moment::after;
use crate::storage_job::{Progress, progress};

/// How far the verification of a backup is.
pub(super) enum Verification {
    /// The Job begins now.
    Begins(Box<Job>),
    /// The Job is at it.
    UnderWay(String),
    /// The backup is what was written: what was seen.
    Good(String),
    /// It is not: what differs.
    Damaged(String),
    /// It could not be verified: why.
    NotMade(String),
    /// The next attempt is not due before then.
    Retries(Timestamp),
}

/// Whether a backup waits for its verification, and something can be done about it now: its Jobs are looked at then.
pub fn is_verified_now(backup: &EtcdBackup, now: Timestamp) -> bool {
    is_stored(backup) && backup.is_to_be_verified() && next_attempt(backup).is_none_or(|next| next <= now)
}

/// How far it is; none where nothing is to be done any more, or was asked for.
pub(super) fn verification(observed: &Observed<'_>) -> Option<Verification> {
    let backup = observed.backup;
    let verify = backup.spec.verify.as_ref().filter(|_| is_stored(backup) && backup.is_to_be_verified())?;
    let content = backup.status.as_ref()?.backup.as_ref()?;
    if let Some(next) = next_attempt(backup).filter(|next| *next > observed.now) {
        return Some(Verification::Retries(next));
    }
    let name = job::name(backup);
    Some(match observed.jobs.iter().find(|job| job.name() == name) {
        Some(job) => outcome(observed, job, content),
        None => begin(observed, verify, content),
    })
}

fn is_stored(backup: &EtcdBackup) -> bool {
    backup.status.as_ref().and_then(|status| status.phase) == Some(BackupPhase::Succeeded)
}

/// Not before then; none: at once.
fn next_attempt(backup: &EtcdBackup) -> Option<Timestamp> {
    let status = backup.status.as_ref()?;
    let tried = status.verification_tried_at.as_ref()?;
    Some(after(tried.0, backoff(failures(backup))))
}

/// How often it was tried in vain.
pub(super) fn failures(backup: &EtcdBackup) -> usize {
    let failures = backup.status.as_ref().and_then(|status| status.verification_failures);
    usize::try_from(failures.unwrap_or_default()).unwrap_or_default()
}

fn begin(observed: &Observed<'_>, verify: &Verify, content: &BackupContent) -> Verification {
    match job::make(observed, verify, content) {
        Ok(job) => Verification::Begins(Box::new(job)),
        Err(why) => Verification::NotMade(why),
    }
}

/// What came of a Job.
fn outcome(observed: &Observed<'_>, job: &Job, content: &BackupContent) -> Verification {
    match progress(job, observed.pods, label::BACKUP) {
        Progress::UnderWay(trouble) => {
            let trouble = trouble.map(|trouble| format!(": {trouble}")).unwrap_or_default();
            Verification::UnderWay(format!("Job {} verifies {}{trouble}", job.name(), content.location))
        }
        Progress::Ended(code, said) => match serde_json::from_str::<VerificationReport>(&said) {
            Ok(report) => {
                let message = quote(report.message.unwrap_or_else(|| "it did not say more".into()));
                match report.is_good {
                    Some(true) => Verification::Good(message),
                    Some(false) => Verification::Damaged(message),
                    None => Verification::NotMade(message),
                }
            }
            Err(_) => Verification::NotMade(quote(format!("the executor's Pod ended with code {code}: {said}"))),
        },
        Progress::NotStarted(why) => {
            Verification::NotMade(quote(format!("the executor's Pod did not end in time: {why}")))
        }
    }
}
