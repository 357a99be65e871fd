//! The outcome of a run that has ended. It is a success only if exit code and events agree.

use crds::Reason;
use crds::playbook_run::{HostFailure, RunOutcome, RunPhase, StepPhase};
use crds::step::Step;

use super::host::Host;
use super::staged::{self, Staging};
use super::text::MESSAGE_LIMIT;
use super::{Ending, Fold, RunFailure, backup, sentence};
use crate::sanitize::clean;

/// Bits of Ansible's exit code that say: hosts failed (2), hosts were unreachable (4).
const HOSTS_FAILED: i32 = 6;

impl Fold {
    /// The outcome, once Ansible has ended. After it every host that is not done has a failure that says why.
    pub fn end(&mut self, ending: Ending) -> RunOutcome {
        let complete = self.ended && self.steps.iter().all(|step| step.phase == StepPhase::Succeeded);
        let running = self.current.take().map(|(index, _)| index).filter(|_| !self.ended);
        if let Some(step) = running.and_then(|index| self.steps.get_mut(index)) {
            step.phase = StepPhase::Failed;
            step.finished_at = self.last_seen.clone();
        }
        for step in self.steps.iter_mut().filter(|step| step.phase == StepPhase::Pending) {
            step.phase = StepPhase::Skipped;
        }
        let first = sentence::first(self.hosts.values()).cloned();
        // Exit code and events must agree.
        let trusted = match ending {
            Ending::Exited(Some(0)) => first.is_none(),
            Ending::Exited(Some(code)) => code & !HOSTS_FAILED == 0 && first.is_some(),
            _ => false,
        };
        if !(trusted && complete) {
            let failure = self.unfinished(ending, first.as_ref());
            for host in self.hosts.values_mut() {
                host.fail_if_well(&failure);
            }
            // Nobody else tells of it.
            if self.hosts.is_empty() && self.failure.is_none() {
                let HostFailure { reason, message, .. } = failure;
                self.failure = Some(RunFailure { reason, message, retriable: true });
            }
        }
        let outcome = self.state_outcome(ending);
        self.outcome = Some(outcome.clone());
        outcome
    }

    fn state_outcome(&self, ending: Ending) -> RunOutcome {
        let hosts: Vec<&Host> = self.hosts.values().collect();
        let failed = hosts.iter().filter(|host| host.result.failure.is_some()).count();
        let first = sentence::first(hosts.iter().copied());
        let phase = match ending {
            Ending::Canceled | Ending::Paused(_) => RunPhase::Canceled,
            Ending::DeadlineExceeded => RunPhase::DeadlineExceeded,
            Ending::Exited(_) if failed == 0 && self.failure.is_none() => RunPhase::Succeeded,
            Ending::Exited(_) => RunPhase::Failed,
        };
        let failure = first.and_then(|host| host.result.failure.as_ref());
        let (reason, message) = self.told(ending, &hosts, failure);
        let retriable = match phase {
            RunPhase::Succeeded => false,
            RunPhase::Failed => {
                let whole = self.failure.as_ref().is_some_and(|failure| failure.retriable);
                whole || hosts.iter().any(|host| host.may_heal())
            }
            RunPhase::Pending
            | RunPhase::Running
            | RunPhase::Canceled
            | RunPhase::DeadlineExceeded
            | RunPhase::Unknown => true,
        };
        let step = match ending {
            Ending::Paused(step) => Some(step),
            _ => failure.and_then(|failure| Step::from_name(&failure.step)),
        };
        RunOutcome {
            phase,
            retriable,
            reason,
            message: clean(&message, MESSAGE_LIMIT),
            step: step.or(self.steps.last().map(|step| step.name)),
            hosts_ok: count(hosts.len() - failed),
            hosts_failed: count(failed),
            digest: self.digest.clone(),
        }
    }

    /// The reason and the sentence. `failure`: that of the host that failed first.
    fn told(&self, ending: Ending, hosts: &[&Host], failure: Option<&HostFailure>) -> (String, String) {
        let stopped = |by: &str| format!("stopped {by}, {}{}", self.position(), sentence::quiet(hosts));
        match (ending, failure) {
            (Ending::Paused(step), _) => (Reason::Paused.into(), format!("paused before step {step}")),
            (Ending::Canceled, _) => (Reason::Canceled.into(), stopped("because it was asked to")),
            (Ending::DeadlineExceeded, _) => (Reason::DeadlineExceeded.into(), stopped("by its deadline")),
            (_, Some(failure)) => {
                let failed = sentence::failed(self.purpose, hosts);
                let made = self.backup.as_ref().map(|content| format!("{}; ", backup::sentence(content)));
                (failure.reason.clone(), made.unwrap_or_default() + &failed)
            }
            (_, None) => match &self.failure {
                Some(failure) => (failure.reason.clone(), failure.message.clone()),
                None => (Reason::Complete.into(), self.done(hosts)),
            },
        }
    }

    /// What was done, of a run that succeeded.
    fn done(&self, hosts: &[&Host]) -> String {
        let staged = self.staging.as_ref().and_then(Staging::staged);
        let staged = staged.map(|staged| staged::sentence(staged, hosts.len()));
        let made = self.backup.as_ref().map(backup::sentence).or(staged);
        made.unwrap_or_else(|| sentence::succeeded(self.purpose, hosts) + &sentence::differing(hosts))
    }

    /// The failure of a host that did not fail itself, of a run that did not come to its end.
    fn unfinished(&self, ending: Ending, first: Option<&Host>) -> HostFailure {
        let step = self.steps.iter().find(|step| step.phase != StepPhase::Succeeded);
        let step = step.or(self.steps.last()).map_or("", |step| step.name.name());
        let (reason, message) = match (ending, first) {
            (Ending::Canceled, _) => {
                (Reason::Canceled, "stopped because it was asked to, before it was done".to_owned())
            }
            (Ending::DeadlineExceeded, _) => {
                (Reason::DeadlineExceeded, "stopped by the run's deadline, before it was done".to_owned())
            }
            (Ending::Paused(step), _) => (Reason::Paused, format!("paused before step {step}")),
            (_, Some(first)) => {
                (Reason::NotReached, format!("not done: the run stopped when {} failed", first.result.name))
            }
            (Ending::Exited(Some(0)), None) => {
                (Reason::NotDone, "ansible-playbook ended well, but not every step and probe was played".to_owned())
            }
            (Ending::Exited(Some(code)), None) => (
                Reason::AnsibleFailed,
                format!("ansible-playbook ended with code {code} and named no host: see the run's log"),
            ),
            (Ending::Exited(None), None) => {
                (Reason::AnsibleKilled, "ansible-playbook was killed (out of memory?): see the run's log".to_owned())
            }
        };
        HostFailure {
            step: step.to_owned(),
            task: self.progress.task.clone(),
            reason: reason.into(),
            message: clean(&message, MESSAGE_LIMIT),
        }
    }

    fn position(&self) -> String {
        match self.steps.iter().find(|step| step.phase != StepPhase::Succeeded) {
            None => "after its last step".to_owned(),
            Some(step) if self.progress.step == step.name.name() && !self.progress.task.is_empty() => {
                format!("in step {}, task \"{}\"", step.name, self.progress.task)
            }
            Some(step) => format!("before step {} was done", step.name),
        }
    }
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
