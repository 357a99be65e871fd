//! What came out of a run for one machine.

use crds::PlaybookRun;
use crds::Reason;
use crds::playbook_run::{HostFailure, HostResult, PlaybookRunStatus, RunPhase};
use crds::step::{Intent, Step};

use crate::message::quote;

/// Reasons of a host that did not fail itself: the run ended before it was done there.
const NOT_ITS_OWN: [Reason; 4] = [Reason::NotReached, Reason::Canceled, Reason::DeadlineExceeded, Reason::Paused];

/// Reasons of a machine that is well itself and waits for others of its cluster: for one that holds the endpoint's
/// address without belonging to it, or that does not know the machine as a peer yet.
const WAITS_FOR_OTHERS: [Reason; 1] = [Reason::LoadBalancerPeersUnaware];

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
    /// The cluster was paused, and it stopped between two steps.
    Held,
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
    /// SSH did not answer, or let nobody in: nothing more was done to the machine.
    pub unreachable: bool,
    /// Nothing failed: the run was cut short, or never began.
    pub interrupted: bool,
}

/// Why no further attempt is made: what failed last, or a person's word.
pub fn why_halted(cause: Option<&Failure>) -> String {
    cause.map_or("a person stopped it".to_owned(), Failure::told)
}

impl Failure {
    fn own(reason: impl Into<String>, message: String, unreachable: bool) -> Self {
        Self { reason: reason.into(), message: quote(message), retriable: true, unreachable, interrupted: false }
    }

    /// Reason and message, as they stand in sentences.
    pub fn told(&self) -> String {
        format!("{}: {}", self.reason, self.message)
    }

    /// What is said of an attempt that a person stopped.
    pub(super) fn canceled() -> Self {
        Self::own(Reason::Canceled, "a person stopped it".into(), false)
    }

    /// The executor is gone, and nobody asked it to go.
    pub(super) fn is_lost_contact(&self) -> bool {
        self.interrupted && !self.was_stopped() && self.has_begun()
    }

    /// SSH does not reach the machine. What else keeps SSH out is no fault of the machine.
    pub fn is_silence(&self) -> bool {
        self.reason == Reason::Unreachable
    }

    /// False: its executor did not start, and no machine was touched.
    pub fn has_begun(&self) -> bool {
        self.reason != Reason::NotStarted
    }

    /// The fault is another machine's: this one cannot mend it, and is not given up for it.
    pub fn waits_for_others(&self) -> bool {
        Reason::among(&self.reason, &WAITS_FOR_OTHERS)
    }

    /// Its time was over, or somebody took its Job away.
    pub fn was_stopped(&self) -> bool {
        self.was_out_of_time() || self.reason == Reason::JobDeleted
    }

    /// Its time was over.
    pub fn was_out_of_time(&self) -> bool {
        self.reason == Reason::DeadlineExceeded
    }
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
    let own = result.and_then(own_failure);
    let resets = run.spec.steps.contains(&Step::Reset);
    if resets && own.is_none() && result.is_some_and(|result| result.clean == Some(true)) {
        // A machine that is clean is done, however the others of its batch fared.
        return Outcome::Succeeded;
    }
    match phase {
        RunPhase::Canceled if reason_of(status) == Reason::Paused => Outcome::Held,
        RunPhase::Canceled => Outcome::Canceled,
        // That it cannot be seen to have stopped does not make it be wanted again.
        RunPhase::Unknown if run.spec.cancel => Outcome::Canceled,
        _ if own.is_some() => own.map_or(Outcome::Canceled, Outcome::Failed),
        RunPhase::Succeeded => succeeded(status, result, host, resets),
        RunPhase::Failed if is_done(run, status, result) => succeeded(status, result, host, resets),
        RunPhase::Unknown => Outcome::Failed(unknown(status)),
        RunPhase::DeadlineExceeded => Outcome::Failed(cut_short(Reason::DeadlineExceeded, said(status))),
        RunPhase::Failed | RunPhase::Pending | RunPhase::Running => Outcome::Failed(failed(status)),
    }
}

/// Whether the machine is done in a run that failed for others of its batch: the executor's last word gives every host
/// that is not done a failure, and counts those that are. An install is done by all or by none.
fn is_done(run: &PlaybookRun, status: &PlaybookRunStatus, result: Option<&HostResult>) -> bool {
    let done = |result: &&HostResult| result.failure.is_none();
    let count = status.hosts.iter().filter(done).count();
    let told = status.outcome.as_ref().map(|outcome| outcome.hosts_ok);
    run.spec.intent != Intent::Install
        && told.and_then(|told| usize::try_from(told).ok()) == Some(count)
        && result.as_ref().is_some_and(done)
}

fn said(status: &PlaybookRunStatus) -> String {
    status.message.clone().unwrap_or_default()
}

/// The reason of a run that gave none.
const NOT_TOLD: &str = Reason::RunFailed.as_str();

/// Why it ended: the executor's word, or else the operator's.
fn reason_of(status: &PlaybookRunStatus) -> &str {
    let told = status.outcome.as_ref().map(|outcome| outcome.reason.as_str());
    status.end_reason().or(told).unwrap_or(NOT_TOLD)
}

fn succeeded(status: &PlaybookRunStatus, result: Option<&HostResult>, host: &str, resets: bool) -> Outcome {
    let some_failed = status.outcome.as_ref().is_some_and(|outcome| outcome.hosts_failed > 0);
    if result.is_none() && some_failed {
        let message = format!("the run ended without a result for {host}");
        return Outcome::Failed(Failure::own(Reason::ResultMissing, message, false));
    }
    if !resets {
        return Outcome::Succeeded;
    }
    let leftovers = result.map(|result| result.leftovers.join(", ")).unwrap_or_default();
    let message = if leftovers.is_empty() {
        "the machine was not seen clean".into()
    } else {
        format!("left on the machine: {leftovers}")
    };
    Outcome::Failed(Failure::own(Reason::NotClean, message, false))
}

/// Where it was seen last says more than that contact was lost.
fn unknown(status: &PlaybookRunStatus) -> Failure {
    let step = status.progress.as_ref().map(|progress| progress.step.as_str()).unwrap_or_default();
    let said = said(status);
    let message = match step {
        "" => said,
        step if said.contains(step) => said,
        step => format!("in step {step}: {said}"),
    };
    let reason = match reason_of(status) {
        NOT_TOLD => Reason::Unknown.as_str(),
        told => told,
    };
    cut_short(reason, message)
}

fn cut_short(reason: impl Into<String>, message: String) -> Failure {
    Failure { interrupted: true, ..Failure::own(reason, message, false) }
}

/// A run that failed, for a Host that did not: the first one's failure decides what is done next.
fn failed(status: &PlaybookRunStatus) -> Failure {
    let first = status.hosts.iter().find_map(|result| Some((result, own_failure(result)?)));
    if let Some((result, failure)) = first {
        let message = format!("{}: {}", result.name, failure.message);
        return Failure { message, ..failure };
    }
    let reason = reason_of(status);
    Failure {
        retriable: status.retriable.unwrap_or(true),
        interrupted: reason == Reason::NotStarted,
        ..Failure::own(reason, said(status), false)
    }
}

/// What went wrong on the host itself.
fn own_failure(result: &HostResult) -> Option<Failure> {
    match &result.failure {
        Some(failure) if Reason::among(&failure.reason, &NOT_ITS_OWN) => None,
        Some(failure) => Some(Failure {
            // It was tried, and put back: the same would be refused again.
            retriable: failure.reason != Reason::ConfigurationRefused,
            ..Failure::own(&failure.reason, place(failure), result.unreachable)
        }),
        None if result.unreachable => Some(Failure::own(Reason::Unreachable, "SSH does not answer".into(), true)),
        None if result.failed > 0 => Some(Failure::own(Reason::TaskFailed, "a task failed".into(), false)),
        None => None,
    }
}

fn place(failure: &HostFailure) -> String {
    let place = match (failure.step.as_str(), failure.task.as_str()) {
        ("", "") => String::new(),
        (step, "") => format!("{step}: "),
        ("", task) => format!("{task}: "),
        (step, task) => format!("{step}, {task}: "),
    };
    format!("{place}{}", failure.message)
}

#[cfg(test)]
mod tests {
    use super::{Outcome, outcome};
    use crds::PlaybookRun;
    use crds::step::Intent;

    fn run(steps: &str, status: &str) -> PlaybookRun {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: r}}, spec: {{clusterName: a, intent: Join, steps: [{steps}], hosts: [h, i]}}, status: {status}}}"
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    /// Reason, and the marks of the failure: Retriable, Unreachable, Interrupted.
    fn check(status: &str, expected: &str) {
        let found = match outcome(&run("prepare, node", status), "h") {
            Outcome::Failed(failure) => {
                let letter = |is: bool, letter: &'static str| if is { letter } else { "" };
                format!(
                    "{} {}{}{}",
                    failure.reason,
                    letter(failure.retriable, "R"),
                    letter(failure.unreachable, "U"),
                    letter(failure.interrupted, "I")
                )
            }
            other => format!("{other:?}"),
        };
        assert_eq!(found, expected, "{status}");
    }

    #[test]
    fn a_canceled_run_that_was_lost_from_sight_is_not_wanted_again() {
        let mut run = run("prepare, node", "{phase: Unknown, message: gone}");
        run.spec.cancel = true;
        assert_eq!(outcome(&run, "h"), Outcome::Canceled);
    }

    #[test]
    fn lost_contact_a_deadline_and_a_start_that_failed_are_interruptions() {
        check("{phase: Unknown, retriable: false, message: gone}", "Unknown RI");
        check(
            "{phase: Unknown, conditions: [{type: Failed, status: 'True', reason: JobDeleted, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}",
            "JobDeleted RI",
        );
        let hosts = "hosts: [{name: h, failure: {step: node, task: t, reason: DeadlineExceeded, message: m}}]";
        check(&format!("{{phase: DeadlineExceeded, {hosts}}}"), "DeadlineExceeded RI");
        check(
            "{phase: Failed, retriable: true, conditions: [{type: Failed, status: 'True', reason: NotStarted, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}",
            "NotStarted RI",
        );
    }

    #[test]
    fn a_host_that_failed_itself_says_so_however_the_run_ended() {
        let hosts = "hosts: [{name: h, failed: 1, failure: {step: node, task: t, reason: DigestMismatch, message: m}}]";
        for phase in ["Failed", "Unknown", "DeadlineExceeded", "Succeeded"] {
            check(&format!("{{phase: {phase}, {hosts}}}"), "DigestMismatch R");
        }
    }

    #[test]
    fn a_host_that_said_a_lot_leaves_room_for_what_happens_next() {
        let hosts = format!(
            "hosts: [{{name: h, failed: 1, failure: {{step: network, task: t, reason: KubeletNotHealthy, message: {}}}}}]",
            "m".repeat(1024)
        );
        for host in ["h", "i"] {
            match outcome(&run("prepare, node", &format!("{{phase: Failed, {hosts}}}")), host) {
                Outcome::Failed(failure) => {
                    assert!(failure.message.contains("network, t: mmm"), "{}", failure.message);
                    assert!(failure.message.len() < 600, "{}", failure.message.len());
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn what_a_person_stopped_is_not_a_failure_and_what_a_pause_held_is_neither() {
        let hosts = "hosts: [{name: h, failure: {step: node, task: t, reason: Canceled, message: m}}]";
        check(&format!("{{phase: Canceled, {hosts}}}"), "Canceled");
        let outcome = "outcome: {phase: Canceled, reason: Paused, message: paused before step node, digest: d}";
        let hosts = "hosts: [{name: h, failure: {step: node, task: '', reason: Paused, message: m}}]";
        check(&format!("{{phase: Canceled, {outcome}, {hosts}}}"), "Held");
    }

    #[test]
    fn a_host_that_was_not_reached_fares_as_the_one_that_failed() {
        check(
            "{phase: Failed, hosts: [{name: h, failure: {step: node, task: t, reason: NotReached, message: m}}, {name: i, unreachable: true}]}",
            "Unreachable RU",
        );
    }

    #[test]
    fn a_machine_of_a_batch_is_done_though_another_one_failed() {
        let hosts = "hosts: [{name: h, ok: 15}, {name: i, unreachable: true, failure: {step: prepare, task: t, reason: Unreachable, message: m}}]";
        let outcome = |ok: i32| {
            format!(
                "outcome: {{phase: Failed, reason: Unreachable, message: m, digest: d, hostsOk: {ok}, hostsFailed: 1}}"
            )
        };
        check(&format!("{{phase: Failed, {}, {hosts}}}", outcome(1)), "Succeeded");
        // Only the last word tells: before it, nothing is said of a host that is not done yet.
        check(&format!("{{phase: Failed, {hosts}}}"), "Unreachable RU");
        check(&format!("{{phase: Failed, {}, {hosts}}}", outcome(0)), "Unreachable RU");
        let mut install = run("prepare", &format!("{{phase: Failed, {}, {hosts}}}", outcome(1)));
        install.spec.intent = Intent::Install;
        assert!(matches!(super::outcome(&install, "h"), Outcome::Failed(_)));
    }

    #[test]
    fn the_step_in_which_contact_was_lost_is_named() {
        let run = run("node", "{phase: Unknown, message: gone, progress: {step: node}}");
        assert!(matches!(outcome(&run, "h"), Outcome::Failed(failure) if failure.message == "in step node: gone"));
    }
}
