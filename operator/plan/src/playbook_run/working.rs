//! A run with a Job: what it is doing, stopping it, and recording what came of it.

use crds::PlaybookRunStatus;
use crds::playbook_run::{FrozenInputs, RunPhase};
use crds::references::LocalRef;
use k8s_openapi::ByteString;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};

use super::conclusion::{conclude, end_of};
use super::pod::{has_begun, has_ended, waits_for};
use super::{RunObserved, Step, frozen, name_of, over, under_way};
use crate::job::metadata;
use crate::{Next, Plan};

/// Name of the compressed log in its ConfigMaps.
const LOG_KEY: &str = "log.gz";
/// Most parts of a log.
const MOST_PARTS: usize = 8;

pub(super) fn plan(observed: &RunObserved<'_>) -> Plan<Step, PlaybookRunStatus> {
    let mut plan = match conclude(observed) {
        Some(conclusion) => {
            let parts = log_parts(observed);
            let mut status = over(
                observed,
                conclusion.phase,
                conclusion.retriable,
                &conclusion.reason,
                &conclusion.message,
            );
            status.log_refs = parts
                .iter()
                .filter_map(|part| part.metadata.name.clone())
                .map(LocalRef::new)
                .collect();
            let mut steps = stop(observed);
            if !parts.is_empty() {
                steps.push(Step::KeepLog(parts));
            }
            Plan {
                steps,
                status,
                next: Next::after_seconds(1),
                waits_for: None,
            }
        }
        None => going_on(observed),
    };
    assigned(observed, &mut plan.status);
    plan
}

fn going_on(observed: &RunObserved<'_>) -> Plan<Step, PlaybookRunStatus> {
    let steps = if observed.stop_is_asked() || job_is_going(observed) {
        stop(observed)
    } else {
        Vec::new()
    };
    let pod = observed.pods.iter().find(|pod| has_begun(pod));
    let (phase, reason, message) = match pod {
        Some(_) if observed.stop_is_asked() => (RunPhase::Running, "Stopping", "is being stopped".to_owned()),
        Some(_) => (RunPhase::Running, "Running", progress(observed)),
        None => (RunPhase::Pending, "WaitsForPod", pending(observed)),
    };
    let condition_message = if pod.is_some() {
        "the executor works".to_owned()
    } else {
        message.clone()
    };
    let status = under_way(observed, phase, reason, &message, &condition_message);
    let stopping = observed
        .pods
        .iter()
        .any(|pod| pod.metadata.deletion_timestamp.is_some());
    let seconds = if pod.is_none() || stopping { 5 } else { 30 };
    Plan {
        steps,
        status,
        next: Next::after_seconds(seconds),
        waits_for: Some(message),
    }
}

/// Somebody deletes the Job: that alone would leave its Pod working.
fn job_is_going(observed: &RunObserved<'_>) -> bool {
    observed
        .job
        .is_some_and(|job| job.metadata.deletion_timestamp.is_some())
}

/// Ends what still runs. A Job whose Pod failed makes no other; one without a Pod must go itself.
fn stop(observed: &RunObserved<'_>) -> Vec<Step> {
    let alive = |pod: &&Pod| !has_ended(pod) && pod.metadata.deletion_timestamp.is_none();
    let mut steps: Vec<Step> = observed
        .pods
        .iter()
        .filter(alive)
        .map(|pod| Step::StopPod(Box::new(pod.clone())))
        .collect();
    if let Some(job) = observed.job
        && observed.pods.is_empty()
        && job.metadata.deletion_timestamp.is_none()
        && end_of(job).is_none()
    {
        steps.push(Step::StopJob(Box::new(job.clone())));
    }
    steps
}

/// `container-runtime, task 12 of 58: start containerd`.
fn progress(observed: &RunObserved<'_>) -> String {
    let status = observed.run.status.as_ref();
    let progress = status
        .and_then(|status| status.progress.as_ref())
        .filter(|progress| !progress.step.is_empty());
    let Some(progress) = progress else {
        return "the executor starts".to_owned();
    };
    let place = match (progress.done, progress.total) {
        (0, _) => progress.step.clone(),
        (done, total) if total >= done => format!("{}, task {done} of {total}", progress.step),
        (done, _) => format!("{}, task {done}", progress.step),
    };
    if progress.task.is_empty() {
        place
    } else {
        format!("{place}: {}", progress.task)
    }
}

fn pending(observed: &RunObserved<'_>) -> String {
    let said = match observed.pods.first() {
        Some(pod) => waits_for(pod),
        None => "waits for its Pod".to_owned(),
    };
    match observed.trouble {
        Some(trouble) if !said.contains(trouble) => format!("{said}: {trouble}"),
        _ => said,
    }
}

fn log_parts(observed: &RunObserved<'_>) -> Vec<ConfigMap> {
    let name = name_of(observed.run);
    let part = |(index, bytes): (usize, &Vec<u8>)| ConfigMap {
        metadata: metadata(observed.run, &format!("{name}-log-{index}")),
        binary_data: Some([(LOG_KEY.to_owned(), ByteString(bytes.clone()))].into()),
        immutable: Some(true),
        ..ConfigMap::default()
    };
    observed
        .log
        .iter()
        .take(MOST_PARTS)
        .enumerate()
        .map(part)
        .collect()
}

/// What was given to the run stands in its Job, which nobody can edit.
fn assigned(observed: &RunObserved<'_>, status: &mut PlaybookRunStatus) {
    let Some(job) = observed.job else { return };
    let number = |name: &str| argument(job, name).and_then(|text| text.parse::<i64>().ok());
    if let Some(token) = number("--token") {
        status.token = token;
    }
    if let Some(attempt) = number("--attempt") {
        status.attempt = i32::try_from(attempt).unwrap_or(i32::MAX);
    }
    if let Some(digest) = argument(job, "--digest") {
        let inputs: FrozenInputs = frozen(observed.run, digest.to_owned());
        status.inputs = Some(inputs);
    }
    status.job_ref = job.metadata.name.clone().map(LocalRef::new);
    if status.started_at.is_none() {
        status.started_at = job.metadata.creation_timestamp.clone();
    }
}

fn argument<'a>(job: &'a Job, name: &str) -> Option<&'a str> {
    let container = job.spec.as_ref()?.template.spec.as_ref()?.containers.first()?;
    let arguments = container.args.as_ref()?;
    let position = arguments.iter().position(|argument| argument == name)?;
    arguments.get(position + 1).map(String::as_str)
}
