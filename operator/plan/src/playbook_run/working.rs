//! A run with a Job: what it is doing, stopping it, and recording what came of it.

use crds::ObjectExt;
use crds::PlaybookRunStatus;
use crds::Reason;
use crds::playbook_run::{FrozenInputs, RunPhase};
use crds::references::LocalRef;
use k8s_openapi::api::core::v1::Pod;

use super::action::Action;
use super::conclusion::conclude;
use super::ending::end_of;
use super::log;
use super::observed::{LogSeen, RunObserved};
use super::pod::{Why, has_begun, has_ended, image_of, running_since, waits_for};
use super::preparing::frozen;
use super::progress::{argument, pending, progress};
use super::status::{over, state, under_way};
use crate::{Next, Plan};

/// A Pod that waited longer than this before it began has its Job's deadline moved.
const WAITED_LONG_SECONDS: i64 = 60;
/// A log that could not be read is read again after this.
const LOG_SECONDS: u64 = 2;

pub(super) fn plan(observed: &RunObserved<'_>) -> Plan<Action, PlaybookRunStatus> {
    let mut plan = match (conclude(observed), observed.log) {
        (Some(_), LogSeen::NotYet(why)) => Plan {
            actions: stop(observed),
            status: observed.status(),
            next: Next::after_seconds(LOG_SECONDS),
            waits_for: Some(format!("the log of its Pod, which is read again: {why}")),
        },
        (Some(conclusion), _) => {
            let parts = log::parts(observed);
            let mut status =
                over(observed, conclusion.phase, conclusion.retriable, conclusion.reason, &conclusion.message);
            status.log_refs = parts.iter().filter_map(|part| part.metadata.name.clone()).map(LocalRef::new).collect();
            state(observed, &mut status, &[log::kept(observed)]);
            let mut actions = stop(observed);
            if !parts.is_empty() {
                actions.push(Action::KeepLog(parts));
            }
            Plan { actions, status, next: Next::after_seconds(1), waits_for: None }
        }
        (None, _) => going_on(observed),
    };
    assigned(observed, &mut plan.status);
    plan
}

fn going_on(observed: &RunObserved<'_>) -> Plan<Action, PlaybookRunStatus> {
    let pod = observed.pods.iter().find(|pod| has_begun(pod));
    let replaced = pod.is_none() && image_is_replaced(observed);
    let actions = if observed.stop_is_asked() || job_is_going(observed) || replaced {
        stop(observed)
    } else {
        prolong(observed, pod)
    };
    let (phase, why) = match pod {
        Some(_) if observed.stop_is_asked() => {
            let asked = if observed.is_killed() { "is being killed" } else { "is being stopped" };
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
    let lasting = if why.reason == Reason::Running { "the executor works" } else { &message };
    let status = under_way(observed, phase, why.reason, &message, lasting);
    let stopping = observed.pods.iter().any(|pod| pod.is_deleting());
    let seconds = if pod.is_none() || stopping { 5 } else { 30 };
    Plan { actions, status, next: Next::after_seconds(seconds), waits_for: Some(message) }
}

/// The image cannot be pulled, and another is wanted by now: this Pod would wait for ever.
fn image_is_replaced(observed: &RunObserved<'_>) -> bool {
    let other = |pod: &Pod| image_of(pod).is_some_and(|image| image != observed.image);
    let stuck = |pod: &&Pod| waits_for(pod).reason == Reason::ImagePullFailed;
    observed.pods.iter().filter(stuck).any(other)
}

/// The time that the Pod waited for a node or an image is not the executor's.
fn prolong(observed: &RunObserved<'_>, pod: Option<&Pod>) -> Vec<Action> {
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
        true => vec![Action::Prolong(Box::new(job.clone()), wanted)],
        false => Vec::new(),
    }
}

/// Somebody deletes the Job: that alone would leave its Pod working.
fn job_is_going(observed: &RunObserved<'_>) -> bool {
    observed.job.is_some_and(|job| job.is_deleting())
}

/// Ends what still runs. A Job whose Pod failed makes no other; one without a Pod must go itself.
fn stop(observed: &RunObserved<'_>) -> Vec<Action> {
    let end = |pod: &Pod| {
        let asked = pod.is_deleting();
        let at_once = asked && pod.metadata.deletion_grace_period_seconds == Some(0);
        match (observed.is_killed(), asked) {
            _ if has_ended(pod) => None,
            (true, _) if !at_once => Some(Action::KillPod(Box::new(pod.clone()))),
            (false, false) => Some(Action::StopPod(Box::new(pod.clone()))),
            _ => None,
        }
    };
    let mut actions: Vec<Action> = observed.pods.iter().filter_map(end).collect();
    if let Some(job) = observed.job
        && observed.pods.is_empty()
        && !job.is_deleting()
        && end_of(job).is_none()
    {
        actions.push(Action::StopJob(Box::new(job.clone())));
    }
    actions
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
