//! What came of a run. Lost contact is Unknown: never Failed, never "still running".

use crds::playbook_run::{RunOutcome, RunPhase};
use crds::step::Step;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

use super::RunObserved;
use super::pod::{has_begun, has_ended, node_of, terminated};

/// A Pod that was asked to end is given up this long after its grace period.
const PATIENCE_SECONDS: i64 = 60;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conclusion {
    pub phase: RunPhase,
    pub retriable: bool,
    pub reason: String,
    pub message: String,
}

impl Conclusion {
    fn new(phase: RunPhase, retriable: bool, reason: &str, message: impl Into<String>) -> Self {
        Self {
            phase,
            retriable,
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    fn unknown(message: impl Into<String>) -> Self {
        Self::new(RunPhase::Unknown, false, "ContactLost", message)
    }
}

/// What came of the run; none while something may still come.
pub(super) fn conclude(observed: &RunObserved<'_>) -> Option<Conclusion> {
    let told = last_word(observed);
    let pod = observed
        .pods
        .iter()
        .find(|pod| has_begun(pod))
        .or(observed.pods.first());
    let conclusion = match pod {
        Some(pod) if has_ended(pod) => Some(match told.or_else(|| termination_message(pod)) {
            Some(conclusion) => conclusion,
            None => by_exit(observed, pod),
        }),
        Some(pod) => given_up(observed, pod).map(|lost| told.unwrap_or(lost)),
        None => without_pod(observed).map(|lost| told.unwrap_or(lost)),
    }?;
    Some(as_asked(observed, conclusion))
}

/// An executor that was stopped without a person's wish leaves it open where things stand.
fn as_asked(observed: &RunObserved<'_>, conclusion: Conclusion) -> Conclusion {
    if conclusion.phase == RunPhase::Canceled && !observed.stop_is_asked() {
        let message = format!(
            "the executor's Pod was stopped from outside: {}",
            conclusion.message
        );
        return Conclusion::unknown(message);
    }
    conclusion
}

/// The executor's last word in the status, if it speaks of these inputs.
fn last_word(observed: &RunObserved<'_>) -> Option<Conclusion> {
    let status = observed.run.status.as_ref()?;
    let outcome = status.outcome.as_ref()?;
    let ours = status
        .inputs
        .as_ref()
        .is_none_or(|inputs| inputs.digest == outcome.digest);
    ours.then(|| of_outcome(outcome)).flatten()
}

fn of_outcome(outcome: &RunOutcome) -> Option<Conclusion> {
    outcome.phase.is_final().then(|| {
        Conclusion::new(
            outcome.phase,
            outcome.retriable,
            &outcome.reason,
            outcome.message.clone(),
        )
    })
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
    let place = word
        .step
        .map(|step| format!(" in step {step}"))
        .unwrap_or_default();
    let message = format!("{:?}{place}: {}", word.outcome, word.reason);
    word.outcome
        .is_final()
        .then(|| Conclusion::new(word.outcome, end.exit_code >= 20, &word.reason, message))
}

/// Without a word, the exit code decides if it is one that the executor documents.
fn by_exit(observed: &RunObserved<'_>, pod: &Pod) -> Conclusion {
    let node = node_of(pod).unwrap_or("an unknown node");
    let Some(end) = terminated(pod) else {
        let status = pod.status.clone().unwrap_or_default();
        let why = status
            .message
            .or(status.reason)
            .unwrap_or_else(|| "without a reason given".into());
        if !has_begun(pod) {
            return never_began(observed, &why);
        }
        return Conclusion::unknown(format!(
            "the executor's Pod on {node} ended without a result: {why}"
        ));
    };
    let failed = |retriable: bool, reason: &str, what: &str| {
        let message = format!(
            "{what} (exit code {}, no further word from the executor)",
            end.exit_code
        );
        Conclusion::new(RunPhase::Failed, retriable, reason, message)
    };
    match (end.exit_code, end.reason.as_deref().unwrap_or_default()) {
        (_, reason @ ("StartError" | "ContainerCannotRun")) => {
            let why = end.message.as_deref().unwrap_or(reason);
            never_began(observed, why)
        }
        // The kubelet has no trace of the container: an image that was never pulled looks like that, too.
        (_, "ContainerStatusUnknown") if !was_seen_at_work(observed) => {
            never_began(observed, "its Pod was stopped")
        }
        (_, "OOMKilled") => {
            Conclusion::unknown(format!("the executor on {node} ran out of memory and was killed"))
        }
        (0, _) => Conclusion::unknown("the executor ended well, but its result is lost".to_owned()),
        (10, _) => failed(false, "InputsRefused", "the executor refused its inputs"),
        (11, _) => failed(false, "HostKeyChanged", "a host's key is not the pinned one"),
        (12, _) => failed(false, "AuthenticationFailed", "a host let nobody in"),
        (20, _) => failed(true, "StepFailed", "a step failed"),
        (21, _) => failed(true, "Unreachable", "hosts were unreachable"),
        (30 | 143, _) => Conclusion::new(
            RunPhase::Canceled,
            false,
            "Canceled",
            "the executor was asked to stop",
        ),
        (31, _) => Conclusion::new(
            RunPhase::DeadlineExceeded,
            true,
            "DeadlineExceeded",
            "its time was over",
        ),
        (code, reason) => {
            let reason = if reason.is_empty() { "Error" } else { reason };
            Conclusion::unknown(format!("the executor on {node} died: {reason}, exit code {code}"))
        }
    }
}

/// Nothing has touched a host.
fn never_began(observed: &RunObserved<'_>, why: &str) -> Conclusion {
    if observed.stop_is_asked() {
        return Conclusion::new(RunPhase::Canceled, false, "Canceled", "canceled before it began");
    }
    Conclusion::new(
        RunPhase::Failed,
        true,
        "NotStarted",
        format!("the executor did not start: {why}"),
    )
}

/// A Pod that was asked to end and is still there long after: its node is gone, or hangs.
fn given_up(observed: &RunObserved<'_>, pod: &Pod) -> Option<Conclusion> {
    let deadline = pod.metadata.deletion_timestamp.as_ref()?.0.as_second();
    if !has_begun(pod) && node_of(pod).is_none() {
        return Some(never_began(
            observed,
            "its Pod was deleted before any node took it",
        ));
    }
    (observed.now.as_second() > deadline + PATIENCE_SECONDS).then(|| {
        let node = node_of(pod).unwrap_or("an unknown node");
        Conclusion::unknown(format!(
            "contact with the executor on node {node} is lost: its Pod was asked to end and does not answer"
        ))
    })
}

fn was_seen_at_work(observed: &RunObserved<'_>) -> bool {
    observed.run.status.as_ref().is_some_and(|status| {
        status.phase == Some(RunPhase::Running) || status.progress.is_some() || !status.hosts.is_empty()
    })
}

/// No Pod is there: not yet, or not any more.
fn without_pod(observed: &RunObserved<'_>) -> Option<Conclusion> {
    let began = was_seen_at_work(observed);
    let Some(job) = observed.job else {
        return Some(match began {
            true => Conclusion::unknown("contact with the executor is lost: its Job and its Pod are gone"),
            false => never_began(observed, "its Job is gone"),
        });
    };
    let end = end_of(job);
    if end.is_none() && job.metadata.deletion_timestamp.is_none() {
        return None;
    }
    if began {
        return Some(Conclusion::unknown(
            "contact with the executor is lost: its Pod is gone without a result",
        ));
    }
    if end == Some("DeadlineExceeded") {
        let why = observed.trouble.unwrap_or("no Pod ran");
        let message = format!("nothing was done before its time was over: {why}");
        return Some(Conclusion::new(
            RunPhase::DeadlineExceeded,
            true,
            "DeadlineExceeded",
            message,
        ));
    }
    Some(never_began(
        observed,
        observed.trouble.unwrap_or("its Job ended without a Pod"),
    ))
}

/// Reason of the Job's end, if it ended.
pub(super) fn end_of(job: &Job) -> Option<&str> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let ended = |type_: &str| matches!(type_, "Failed" | "Complete" | "FailureTarget");
    let condition = conditions
        .iter()
        .find(|condition| ended(&condition.type_) && condition.status == "True")?;
    Some(condition.reason.as_deref().unwrap_or_default())
}
