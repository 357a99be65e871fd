//! How the executor's process ended, as far as run, Job and Pod tell: by its own word, without one, out of sight, or
//! before it began.

use crds::ObjectExt;
use crds::Reason;
use crds::playbook_run::{RunOutcome, RunPhase};
use crds::step::Step;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

use super::observed::RunObserved;
use super::pod::{Why, has_begun, has_ended, node_is_silent, node_of, terminated, waits_for};
use super::progress::{argument, pending, waited_for};

/// A Pod that was asked to end is given up this long after its grace period; one whose node is silent has no use for
/// that.
const PATIENCE_SECONDS: i64 = 30;

/// How the executor's process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By its own word, or an exit code that it documents.
    Said(Conclusion),
    /// It is gone, and said nothing.
    Died(Why),
    /// It may still work.
    Lost(String),
    /// It never was there.
    NeverBegan(String),
}

/// How it ended, and the Pod that tells; none while something may still come.
pub(super) fn ending<'a>(observed: &RunObserved<'a>) -> Option<(Ending, Option<&'a Pod>)> {
    let told = last_word(observed);
    let pod = observed.pods.iter().find(|pod| has_begun(pod)).or(observed.pods.first());
    let ending = match pod {
        Some(pod) if has_ended(pod) => match told.or_else(|| termination_message(pod)) {
            Some(said) => Ending::Said(said),
            None => by_exit(observed, pod),
        },
        Some(pod) => given_up(observed, pod).map(|lost| told.map_or(lost, Ending::Said))?,
        None => without_pod(observed).map(|lost| told.map_or(lost, Ending::Said))?,
    };
    Some((ending, pod))
}

/// The executor's last word in the status, if it speaks of these inputs.
fn last_word(observed: &RunObserved<'_>) -> Option<Conclusion> {
    let status = observed.run.status.as_ref()?;
    let outcome = status.outcome.as_ref()?;
    // Nobody can edit the Job's arguments.
    let of_job = observed.job.and_then(|job| argument(job, "--digest"));
    let of_status = status.inputs.as_ref().map(|inputs| inputs.digest.as_str());
    let ours = of_job.or(of_status).is_none_or(|digest| digest == outcome.digest);
    ours.then(|| of_outcome(outcome)).flatten()
}

fn of_outcome(outcome: &RunOutcome) -> Option<Conclusion> {
    outcome
        .phase
        .is_final()
        .then(|| Conclusion::new(outcome.phase, outcome.retriable, outcome.reason.as_str(), outcome.message.clone()))
}

/// The least that a termination message says.
#[derive(Deserialize)]
struct ShortWord {
    outcome: RunPhase,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    step: Option<Step>,
}

fn termination_message(pod: &Pod) -> Option<Conclusion> {
    let end = terminated(pod)?;
    let text = end.message.as_deref()?;
    if let Ok(outcome) = serde_json::from_str::<RunOutcome>(text) {
        return of_outcome(&outcome);
    }
    let word: ShortWord = serde_json::from_str(text).ok()?;
    let place = word.step.map(|step| format!(" in step {step}")).unwrap_or_default();
    let message = format!("{:?}{place}: {}", word.outcome, word.reason);
    word.outcome.is_final().then(|| Conclusion::new(word.outcome, end.exit_code >= 20, word.reason, message))
}

/// Without a word, the exit code decides if it is one that the executor documents.
fn by_exit(observed: &RunObserved<'_>, pod: &Pod) -> Ending {
    let node = node_of(pod).unwrap_or("an unknown node");
    let Some(end) = terminated(pod) else {
        let status = pod.status.clone().unwrap_or_default();
        let why = status.message.or(status.reason).unwrap_or_else(|| "without a reason given".into());
        return match has_begun(pod) || was_seen_at_work(observed) {
            true => Ending::Lost(format!("its Pod on {node} was given up: {why}")),
            false => Ending::NeverBegan(why),
        };
    };
    let died = |reason, message: String| Ending::Died(Why::new(reason, message));
    match (end.exit_code, end.reason.as_deref().unwrap_or_default()) {
        (_, reason @ ("StartError" | "ContainerCannotRun")) => {
            Ending::NeverBegan(end.message.clone().unwrap_or_else(|| reason.to_owned()))
        }
        // The kubelet has no trace of the container: an image that was never pulled looks like that, too.
        (_, "ContainerStatusUnknown") if !was_seen_at_work(observed) => Ending::NeverBegan(held_up(observed)),
        (_, "OOMKilled") => {
            died(Reason::OutOfMemory, format!("the executor on {node} ran out of memory and was killed"))
        }
        (0, _) => died(Reason::ResultLost, format!("the executor on {node} ended well, but its result is lost")),
        (137, _) => died(Reason::ExecutorKilled, format!("the executor on {node} was killed (exit code 137)")),
        (code, reason) => documented(code).map_or_else(
            || {
                let reason = if reason.is_empty() { "Error" } else { reason };
                let message = format!("the executor on {node} died: {reason}, exit code {code}");
                died(Reason::ExecutorDied, message)
            },
            Ending::Said,
        ),
    }
}

/// An exit code that the executor documents.
fn documented(code: i32) -> Option<Conclusion> {
    use RunPhase::{Canceled, DeadlineExceeded, Failed};
    let (phase, retriable, reason, what) = match code {
        10 => (Failed, false, Reason::InputsRefused, "the executor refused its inputs"),
        11 => (Failed, false, Reason::HostKeyChanged, "a host's key is not the pinned one"),
        12 => (Failed, false, Reason::AuthenticationFailed, "a host let nobody in"),
        20 => (Failed, true, Reason::StepFailed, "a step failed"),
        21 => (Failed, true, Reason::Unreachable, "hosts were unreachable"),
        30 | 143 => (Canceled, true, Reason::CanceledUnconfirmed, "the executor was asked to stop"),
        31 => (DeadlineExceeded, true, Reason::DeadlineExceeded, "its time was over"),
        _ => return None,
    };
    let message = format!("{what} (exit code {code}, no further word from the executor)");
    Some(Conclusion::new(phase, retriable, reason, message))
}

/// A Pod that was asked to end and is still there long after: its node is gone, or hangs.
fn given_up(observed: &RunObserved<'_>, pod: &Pod) -> Option<Ending> {
    let ends = pod.metadata.deletion_timestamp.as_ref()?.0.as_second();
    let Some(node) = node_of(pod) else {
        return Some(Ending::NeverBegan(held_up(observed)));
    };
    let asked = ends - pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
    let from = if node_is_silent(pod) { asked } else { ends };
    (observed.now.as_second() > from + PATIENCE_SECONDS).then(|| {
        let silent = format!("node {node} does not answer, and its Pod there does not end");
        match has_begun(pod) || was_seen_at_work(observed) {
            true => Ending::Lost(silent),
            // It may have begun since the node was last heard.
            false => Ending::Lost(format!("{silent} ({})", waits_for(pod).message)),
        }
    })
}

fn was_seen_at_work(observed: &RunObserved<'_>) -> bool {
    observed.run.status.as_ref().is_some_and(|status| {
        status.phase == Some(RunPhase::Running) || status.progress.is_some() || !status.hosts.is_empty()
    })
}

/// No Pod is there: not yet, or not any more.
fn without_pod(observed: &RunObserved<'_>) -> Option<Ending> {
    let began = was_seen_at_work(observed);
    let Some(job) = observed.job else {
        return Some(match began {
            true => Ending::Lost("its Job and its Pod are gone".into()),
            false => Ending::NeverBegan("its Job is gone".into()),
        });
    };
    let ended = end_of(job);
    if ended.is_none() && !job.is_deleting() {
        return None;
    }
    if began {
        return Some(Ending::Lost("its Pod is gone without a result".into()));
    }
    Some(Ending::NeverBegan(match (observed.trouble, ended) {
        (None, None) => "its Job was deleted".into(),
        (None, Some(_)) => held_up(observed),
        (Some(_), _) => pending(observed).message,
    }))
}

/// Why the Pod that is gone never began.
fn held_up(observed: &RunObserved<'_>) -> String {
    let said = waited_for(observed).map(str::to_owned);
    let seen = observed.trouble.map(|trouble| trouble.message.clone());
    said.or(seen).unwrap_or_else(|| "its Pod was ended before it began".into())
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conclusion {
    pub phase: RunPhase,
    pub retriable: bool,
    pub reason: String,
    pub message: String,
}

impl Conclusion {
    pub(super) fn new(phase: RunPhase, retriable: bool, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { phase, retriable, reason: reason.into(), message: message.into() }
    }
}

/// Reason of the Job's end, if it ended.
pub(super) fn end_of(job: &Job) -> Option<&str> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let ended = |type_: &str| matches!(type_, "Failed" | "Complete" | "FailureTarget");
    let condition = conditions.iter().find(|condition| ended(&condition.type_) && condition.status == "True")?;
    Some(condition.reason.as_deref().unwrap_or_default())
}
