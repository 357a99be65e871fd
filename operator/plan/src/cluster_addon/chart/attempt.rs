//! What came of the Job that runs Helm, and when the next one may.

use crds::chart::ChartReport;
use crds::cluster_addon::{ChartFailure, ChartRelease};
use crds::commands::Target;
use crds::names::{annotation, label};
use crds::{ClusterAddon, ObjectExt, Reason};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::attempts::{asked_retry, backoff, retry_command};
use crate::cluster_addon::observed::Observed;
use crate::message::quote;
use crate::moment::{after, day_and_clock};
use crate::storage_job::{Progress, progress};

/// After so many failures in a row nothing is tried by itself: each attempt disturbs what serves.
const MOST_ATTEMPTS: i32 = 3;

/// The release with what came of its last Job.
pub(super) struct Settled {
    pub release: ChartRelease,
    /// The Job is at it, in words.
    pub under_way: Option<String>,
    /// The Job of this name is over.
    pub ended: Option<String>,
}

/// What came of the Job that was begun last.
pub(super) fn settle(observed: &Observed<'_>, mut release: ChartRelease) -> Settled {
    let Some(name) = release.job.clone() else { return Settled { release, under_way: None, ended: None } };
    let Some(job) = observed.chart.jobs.iter().find(|job| job.name() == name) else {
        // It was not made, or was gone before anybody read what came of it: the cluster says what is left to do.
        release.job = None;
        if let Some(failure) = &mut release.failure {
            failure.retry = None;
        }
        return Settled { release, under_way: None, ended: Some(name) };
    };
    let failed = |message: String| ChartReport {
        reason: Some(Reason::ReleaseFailed.into()),
        message: Some(message),
        ..ChartReport::default()
    };
    let report = match progress(job, &observed.chart.pods, label::CLUSTER_ADDON) {
        Progress::UnderWay(trouble) => {
            let trouble = trouble.map(|trouble| format!(": {trouble}")).unwrap_or_default();
            return Settled { release, under_way: Some(format!("Job {name} runs Helm{trouble}")), ended: None };
        }
        Progress::Ended(code, said) => serde_json::from_str::<ChartReport>(&said)
            .unwrap_or_else(|_| failed(format!("the executor's Pod ended with code {code}: {said}"))),
        Progress::NotStarted(why) => failed(format!("the executor's Pod did not end in time: {why}")),
    };
    release.job = None;
    release.tried_at = Some(Time(observed.now));
    release.digest = report.digest.clone().or(release.digest);
    release.failure = match report.succeeded {
        true => None,
        false => Some(failure(job, report, release.failure.as_ref())),
    };
    Settled { release, under_way: None, ended: Some(name) }
}

fn failure(job: &Job, report: ChartReport, before: Option<&ChartFailure>) -> ChartFailure {
    let annotations = job.metadata.annotations.as_ref();
    let wanted = annotations.and_then(|all| all.get(annotation::WANTED)).cloned().unwrap_or_default();
    let before = before.filter(|before| before.wanted == wanted);
    ChartFailure {
        attempts: before.map_or(0, |before| before.attempts).saturating_add(1),
        retry: before.and_then(|before| before.retry.clone()),
        reason: report.reason.unwrap_or_else(|| Reason::ReleaseFailed.into()),
        message: quote(report.message.unwrap_or_else(|| "it did not say why".into())),
        wanted,
    }
}

/// Whether something may be tried again.
pub(super) enum Again {
    /// Now; the retry that this answers.
    Now(Option<String>),
    /// Not before then.
    At(Timestamp),
    /// Not before a person asks for it.
    Asked,
}

/// Whether this may be tried (again) now.
pub(super) fn again(observed: &Observed<'_>, release: &ChartRelease, wanted: &str) -> Again {
    let metadata = &observed.object.metadata;
    let asked = asked_retry(metadata.annotations.as_ref(), metadata.generation.unwrap_or_default());
    let Some(failure) = release.failure.as_ref().filter(|failure| failure.wanted == wanted) else {
        return Again::Now(asked);
    };
    if asked.is_some() && asked != failure.retry {
        return Again::Now(asked);
    }
    if disturbs(failure) && failure.attempts >= MOST_ATTEMPTS {
        return Again::Asked;
    }
    let failures = usize::try_from(failure.attempts).unwrap_or_default();
    let next = release.tried_at.as_ref().map(|tried| after(tried.0, backoff(failures)));
    match next.filter(|next| *next > observed.now) {
        Some(next) => Again::At(next),
        None => Again::Now(failure.retry.clone()),
    }
}

/// A chart that cannot be fetched disturbs nobody, and an uninstall that failed is to go on.
fn disturbs(failure: &ChartFailure) -> bool {
    let reason = Reason::from_name(&failure.reason);
    matches!(reason, Some(Reason::ReleaseFailed | Reason::ChartDigestMismatch) | None)
}

/// When the next attempt is, in words.
pub(super) fn next_attempt(object: &ClusterAddon, again: &Again) -> String {
    match again {
        Again::Now(_) => "the next attempt begins".to_owned(),
        Again::At(at) => format!("the next attempt is at {}", day_and_clock(*at)),
        Again::Asked => {
            let command = retry_command(Target::ClusterAddon, &object.metadata);
            format!("it failed {MOST_ATTEMPTS} times; for another attempt: {command}")
        }
    }
}
