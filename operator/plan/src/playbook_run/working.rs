//! A run with a Job: what it is doing, stopping it, and recording what came of it.

use crds::ObjectExt;
use crds::PlaybookRunStatus;
use crds::Reason;
use crds::playbook_run::{FrozenInputs, RunPhase};
use crds::references::LocalRef;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use super::conclusion::{conclude, end_of};
use super::pod::{Why, has_begun, has_ended, image_of, running_since, waits_for};
use super::{RunObserved, Step, frozen, log, over, state, under_way};
use crate::{Next, Plan};

/// A Pod that waited longer than this before it began has its Job's deadline moved.
const WAITED_LONG_SECONDS: i64 = 60;

pub(super) fn plan(observed: &RunObserved<'_>) -> Plan<Step, PlaybookRunStatus> {
    let mut plan = match conclude(observed) {
        Some(conclusion) => {
            let parts = log::parts(observed);
            let mut status = over(
                observed,
                conclusion.phase,
                conclusion.retriable,
                conclusion.reason,
                &conclusion.message,
            );
            status.log_refs = parts
                .iter()
                .filter_map(|part| part.metadata.name.clone())
                .map(LocalRef::new)
                .collect();
            state(observed, &mut status, &[log::kept(observed)]);
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
    let pod = observed.pods.iter().find(|pod| has_begun(pod));
    let replaced = pod.is_none() && image_is_replaced(observed);
    let steps = if observed.stop_is_asked() || job_is_going(observed) || replaced {
        stop(observed)
    } else {
        prolong(observed, pod)
    };
    let (phase, why) = match pod {
        Some(_) if observed.stop_is_asked() => {
            let asked = if observed.is_killed() {
                "is being killed"
            } else {
                "is being stopped"
            };
            (RunPhase::Running, Why::new(Reason::Stopping, asked))
        }
        Some(_) => {
            let progress = progress(observed).unwrap_or_else(|| "the executor starts".to_owned());
            (RunPhase::Running, Why::new(Reason::Running, progress))
        }
        None => (RunPhase::Pending, pending(observed)),
    };
    let message = match observed.ignored_kill() {
        Some(ignored) => format!("{}; {ignored}", why.message),
        None => why.message,
    };
    // What moves with each task is no news for a condition.
    let lasting = if why.reason == Reason::Running {
        "the executor works"
    } else {
        &message
    };
    let status = under_way(observed, phase, why.reason, &message, lasting);
    let stopping = observed.pods.iter().any(|pod| pod.is_deleting());
    let seconds = if pod.is_none() || stopping { 5 } else { 30 };
    Plan {
        steps,
        status,
        next: Next::after_seconds(seconds),
        waits_for: Some(message),
    }
}

/// The image cannot be pulled, and another is wanted by now: this Pod would wait for ever.
fn image_is_replaced(observed: &RunObserved<'_>) -> bool {
    let other = |pod: &Pod| image_of(pod).is_some_and(|image| image != observed.image);
    let stuck = |pod: &&Pod| waits_for(pod).reason == Reason::ImagePullFailed;
    observed.pods.iter().filter(stuck).any(other)
}

/// The time that the Pod waited for a node or an image is not the executor's.
fn prolong(observed: &RunObserved<'_>, pod: Option<&Pod>) -> Vec<Step> {
    let (Some(job), Some(began)) = (observed.job, pod.and_then(running_since)) else {
        return Vec::new();
    };
    let started = job.status.as_ref().and_then(|status| status.start_time.as_ref());
    let deadline = job.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
    let (Some(started), Some(deadline)) = (started, deadline) else {
        return Vec::new();
    };
    let waited = began - started.0.as_second();
    let wanted = waited + i64::from(observed.run.spec.timeout_seconds);
    match waited > WAITED_LONG_SECONDS && deadline < wanted {
        true => vec![Step::Prolong(Box::new(job.clone()), wanted)],
        false => Vec::new(),
    }
}

/// Somebody deletes the Job: that alone would leave its Pod working.
fn job_is_going(observed: &RunObserved<'_>) -> bool {
    observed.job.is_some_and(|job| job.is_deleting())
}

/// Ends what still runs. A Job whose Pod failed makes no other; one without a Pod must go itself.
fn stop(observed: &RunObserved<'_>) -> Vec<Step> {
    let end = |pod: &Pod| {
        let asked = pod.is_deleting();
        let at_once = asked && pod.metadata.deletion_grace_period_seconds == Some(0);
        match (observed.is_killed(), asked) {
            _ if has_ended(pod) => None,
            (true, _) if !at_once => Some(Step::KillPod(Box::new(pod.clone()))),
            (false, false) => Some(Step::StopPod(Box::new(pod.clone()))),
            _ => None,
        }
    };
    let mut steps: Vec<Step> = observed.pods.iter().filter_map(end).collect();
    if let Some(job) = observed.job
        && observed.pods.is_empty()
        && !job.is_deleting()
        && end_of(job).is_none()
    {
        steps.push(Step::StopJob(Box::new(job.clone())));
    }
    steps
}

/// `container-runtime, task 12 of 58: start containerd`; none before the first step.
pub(super) fn progress(observed: &RunObserved<'_>) -> Option<String> {
    let progress = observed.run.status.as_ref()?.progress.as_ref();
    let progress = progress.filter(|progress| !progress.step.is_empty())?;
    let place = match (progress.done, progress.total) {
        (0, _) => progress.step.clone(),
        (done, total) if total >= done => format!("{}, task {done} of {total}", progress.step),
        (done, _) => format!("{}, task {done}", progress.step),
    };
    Some(if progress.task.is_empty() {
        place
    } else {
        format!("{place}: {}", progress.task)
    })
}

/// Why no Pod works yet.
pub(super) fn pending(observed: &RunObserved<'_>) -> Why {
    let said = match observed.pods.first() {
        Some(pod) if pod.is_deleting() => {
            // What it waited for is told until it is gone: then it is why nothing was done.
            let waited_for = waited_for(observed).unwrap_or("its Pod is being ended");
            return Why::new(Reason::Stopping, waited_for);
        }
        Some(pod) => waits_for(pod),
        None => Why::new(Reason::WaitingForPod, "waits for its Pod"),
    };
    match observed.trouble {
        Some(trouble)
            if said.reason != Reason::ImagePullFailed && !said.message.contains(&trouble.message) =>
        {
            Why {
                reason: trouble.reason().unwrap_or(said.reason),
                message: format!("{}: {}", said.message, trouble.message),
            }
        }
        _ => said,
    }
}

/// What was last said of a Pod that did not come up.
pub(super) fn waited_for<'a>(observed: &RunObserved<'a>) -> Option<&'a str> {
    let status = observed.run.status.as_ref();
    let status = status.filter(|status| status.phase == Some(RunPhase::Pending))?;
    status.message.as_deref()
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

pub(super) fn argument<'a>(job: &'a Job, name: &str) -> Option<&'a str> {
    let container = job.spec.as_ref()?.template.spec.as_ref()?.containers.first()?;
    let arguments = container.args.as_ref()?;
    let position = arguments.iter().position(|argument| argument == name)?;
    arguments.get(position + 1).map(String::as_str)
}
