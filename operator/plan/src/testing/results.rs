//! How a run ended, as its executor reports it.

use crds::playbook_run::{HostFailure, HostResult, PlaybookRunStatus, RunOutcome, RunPhase, StepPhase, StepStatus};
use crds::{ObjectExt, Reason};

use super::world::World;

impl World {
    /// Records how a run ended, with so many of its steps done.
    pub(super) fn end(&mut self, index: usize, phase: RunPhase, reason: Reason, done: usize) {
        let finished = self.time();
        let run = &mut self.runs[index];
        let steps = &run.spec.steps;
        let status = run.status.get_or_insert_default();
        status.phase = Some(phase);
        status.finished_at = Some(finished.clone());
        let next = steps.get(done).map_or("", |step| step.name());
        status.message = Some(match reason {
            Reason::Paused => format!("paused before step {next}"),
            reason => format!("{reason} in step {next}"),
        });
        let succeeded = steps.iter().take(done).map(|step| StepStatus {
            name: *step,
            phase: StepPhase::Succeeded,
            started_at: Some(finished.clone()),
            finished_at: None,
            changed: 0,
        });
        status.steps = succeeded.collect();
        let end = crds::playbook_run::end(phase, reason.as_str(), reason.as_str());
        status.conditions = crds::conditions::state(&[], &end, None, &finished);
        self.remember(index);
    }

    /// What the executor says of each host, beside how the run ended.
    pub(super) fn report_results(&mut self, index: usize, results: Vec<HostResult>) {
        self.status_of(index).hosts = results;
        self.remember(index);
    }

    /// What the executor says last: every host that is not done has a failure.
    pub(super) fn report_outcome(&mut self, index: usize, phase: RunPhase, reason: Reason, results: Vec<HostResult>) {
        let failed = results.iter().filter(|result| result.failure.is_some()).count();
        let count = |count: usize| i32::try_from(count).unwrap();
        let status = self.status_of(index);
        status.retriable = (phase == RunPhase::Failed).then_some(true);
        status.outcome = Some(RunOutcome {
            phase,
            retriable: phase == RunPhase::Failed,
            reason: reason.into(),
            message: String::new(),
            step: None,
            hosts_ok: count(results.len() - failed),
            hosts_failed: count(failed),
            digest: String::new(),
        });
        self.report_results(index, results);
    }

    fn status_of(&mut self, index: usize) -> &mut PlaybookRunStatus {
        self.runs[index].status.get_or_insert_default()
    }

    fn remember(&mut self, index: usize) {
        let run = &self.runs[index];
        self.jobs.extend(run.status.clone().map(|status| (run.name().to_owned(), status)));
    }
}

pub(super) fn failure(step: &str, reason: Reason) -> HostFailure {
    HostFailure { step: step.into(), task: "write sysctl".into(), reason: reason.into(), message: "no".into() }
}

pub(super) fn failed(host: &str, step: &str, reason: Reason) -> HostResult {
    HostResult {
        name: host.to_owned(),
        unreachable: reason == Reason::Unreachable,
        failure: Some(failure(step, reason)),
        ..HostResult::default()
    }
}
