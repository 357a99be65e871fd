//! Progress for a person at a terminal: a line when a step begins or ends, when a host fails, and at the end.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::Instant;

use crds::playbook_run::{HostResult, RunPhase, StepPhase};
use crds::step::Step;

use crate::fold::Snapshot;

/// Prints progress, each line once.
pub struct Terminal<W> {
    out: W,
    started: Instant,
    steps: Vec<(Step, StepPhase)>,
    failed: BTreeSet<String>,
}

impl<W: Write> Terminal<W> {
    /// A terminal on which nothing was printed yet.
    pub fn new(out: W) -> Self {
        Self { out, started: Instant::now(), steps: Vec::new(), failed: BTreeSet::new() }
    }

    /// Prints the changes since the last snapshot.
    pub fn show(&mut self, snapshot: &Snapshot) {
        let steps: Vec<_> = snapshot.steps.iter().map(|step| (step.name, step.phase)).collect();
        let said = std::mem::replace(&mut self.steps, steps);
        for step in snapshot.steps.iter().filter(|step| !said.contains(&(step.name, step.phase))) {
            match step.phase {
                StepPhase::Running => self.line(step.name.name()),
                StepPhase::Succeeded => self.line(&format!("{}: done, {} changed", step.name, step.changed)),
                StepPhase::Failed => self.line(&format!("{}: failed", step.name)),
                StepPhase::Pending | StepPhase::Skipped => {}
            }
        }
        for host in &snapshot.hosts {
            if host.failure.is_some() && self.failed.insert(host.name.clone()) {
                self.failure(host);
            }
        }
        if let Some(outcome) = &snapshot.outcome {
            let word = if outcome.phase == RunPhase::Succeeded { "done" } else { &outcome.reason };
            self.line(&format!("{word}: {}", outcome.message));
        }
    }

    fn failure(&mut self, host: &HostResult) {
        if let Some(failure) = &host.failure {
            let task = if failure.task.is_empty() { String::new() } else { format!(" at \"{}\"", failure.task) };
            self.line(&format!("  {}{task}: {}: {}", host.name, failure.reason, failure.message));
        }
    }

    fn line(&mut self, text: &str) {
        let seconds = self.started.elapsed().as_secs_f64();
        // A closed terminal does not end a run.
        let _ = writeln!(self.out, "{seconds:7.1}s  {text}");
    }
}
