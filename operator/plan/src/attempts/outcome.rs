//! What came out of a run for one machine.

use crds::PlaybookRun;
use crds::playbook_run::{HostResult, RunPhase};
use crds::step::Step;

/// What came out of a run for one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not over yet.
    UnderWay,
    /// Every step is done.
    Succeeded,
    /// Something went wrong.
    Failed(Failure),
    /// A person stopped it.
    Canceled,
}

/// What went wrong for one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// CamelCase.
    pub reason: String,
    /// One sentence, with step and task when they are known.
    pub message: String,
    /// Whether another attempt may help.
    pub retriable: bool,
    /// SSH did not answer, or let nobody in.
    pub unreachable: bool,
}

/// What came out of the run for a Host.
pub fn outcome(run: &PlaybookRun, host: &str) -> Outcome {
    let Some(status) = &run.status else {
        return Outcome::UnderWay;
    };
    let Some(phase) = status.phase.filter(|phase| phase.is_final()) else {
        return Outcome::UnderWay;
    };
    let result = status.hosts.iter().find(|result| result.name == host);
    let failure = result.and_then(host_failure);
    let clean = result.is_some_and(|result| result.clean == Some(true));
    let only_cut_short = failure
        .as_ref()
        .is_none_or(|failure| failure.reason == "NotReached");
    if run.spec.steps.contains(&Step::Reset) && clean && only_cut_short {
        // A machine that is clean is done, however the others of its batch fared.
        return Outcome::Succeeded;
    }
    if let Some(failure) = failure {
        return Outcome::Failed(failure);
    }
    let said = status.message.clone().unwrap_or_default();
    let failed = |reason: &str, message: String| {
        Outcome::Failed(Failure {
            reason: reason.into(),
            message,
            retriable: status.retriable.unwrap_or(true),
            unreachable: false,
        })
    };
    let all_well = || {
        status
            .outcome
            .as_ref()
            .is_none_or(|outcome| outcome.hosts_failed == 0)
    };
    match phase {
        RunPhase::Succeeded if result.is_none() && !all_well() => failed(
            "ResultMissing",
            format!("the run ended without a result for {host}"),
        ),
        RunPhase::Succeeded if run.spec.steps.contains(&Step::Reset) => {
            let leftovers = result
                .map(|result| result.leftovers.join(", "))
                .unwrap_or_default();
            let message = if leftovers.is_empty() {
                "the machine was not seen clean".into()
            } else {
                format!("left on the machine: {leftovers}")
            };
            failed("NotClean", message)
        }
        RunPhase::Succeeded => Outcome::Succeeded,
        RunPhase::Canceled => Outcome::Canceled,
        RunPhase::DeadlineExceeded => failed("DeadlineExceeded", said),
        RunPhase::Unknown => failed("Unknown", said),
        RunPhase::Failed | RunPhase::Pending | RunPhase::Running => {
            let reason = status.outcome.as_ref().map(|outcome| outcome.reason.clone());
            failed(&reason.unwrap_or_else(|| "RunFailed".into()), said)
        }
    }
}

fn host_failure(result: &HostResult) -> Option<Failure> {
    match &result.failure {
        Some(failure) => {
            let place = match (failure.step.as_str(), failure.task.as_str()) {
                ("", "") => String::new(),
                (step, "") => format!("{step}: "),
                ("", task) => format!("{task}: "),
                (step, task) => format!("{step}, {task}: "),
            };
            Some(Failure {
                reason: failure.reason.clone(),
                message: format!("{place}{}", failure.message),
                retriable: true,
                unreachable: result.unreachable,
            })
        }
        None if result.unreachable => Some(Failure {
            reason: "Unreachable".into(),
            message: "SSH does not answer".into(),
            retriable: true,
            unreachable: true,
        }),
        None if result.failed > 0 => Some(Failure {
            reason: "TaskFailed".into(),
            message: "a task failed".into(),
            retriable: true,
            unreachable: false,
        }),
        None => None,
    }
}
