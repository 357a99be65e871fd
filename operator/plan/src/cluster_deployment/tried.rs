//! How often it was tried to bring machines to what is wanted now.

use std::collections::BTreeMap;

use crds::names::annotation;
use crds::step::{Intent, Step};
use crds::{ObjectExt, PlaybookRun};
use jiff::Timestamp;

use super::request::{Attempt, Request, Target, number_after};
use super::state::{ClusterMachine, ClusterState};
use crate::attempts::{self, RetryDecision};

/// The runs of an intent for what is wanted now.
pub(super) struct Tried<'a> {
    intent: Intent,
    /// What is wanted, by which such runs are told from others.
    key: String,
    runs: Vec<&'a PlaybookRun>,
    /// All, the newest first.
    all: Vec<&'a PlaybookRun>,
}

impl<'a> Tried<'a> {
    /// Runs of an intent that the operator made for this.
    pub fn new(state: &ClusterState<'a>, intent: Intent, key: String) -> Self {
        let all = runs(state, intent);
        let is_same = |run: &&PlaybookRun| run.annotation(annotation::ROLLS_OUT) == Some(&key);
        let runs = all.iter().copied().filter(is_same).collect();
        Self { intent, key, runs, all }
    }

    /// Whether the next attempt at these steps on the machine is due, whatever hooks are around them.
    pub fn decision(&self, state: &ClusterState<'_>, machine: &ClusterMachine<'_>, steps: &[Step]) -> RetryDecision {
        let machine = machine.machine;
        let same: Vec<&PlaybookRun> = self.runs.iter().copied().filter(|run| plays(run, steps)).collect();
        let tried = attempts::tried(&same, &[self.intent], machine.uid());
        let policy = state.terms.limited(state.terms.asked_retries(machine));
        // How far a machine came whose upgrade takes too long is looked at by a person first.
        let policy = if self.intent == Intent::Upgrade { policy.deadline_is_final() } else { policy };
        attempts::retry_decision(&tried, &policy, state.observed.now)
    }

    /// Whether the last run with these steps on the machine was for this, and went well: what differs all the same
    /// would do so for ever.
    pub fn is_in_vain(&self, state: &ClusterState<'_>, machine: &ClusterMachine<'_>, steps: &[Step]) -> bool {
        let RetryDecision::Done { run, .. } = self.decision(state, machine, steps) else { return false };
        let is_same = |run: &&&PlaybookRun| plays(run, steps) && attempts::is_about(run, machine.uid());
        self.all.iter().find(is_same).is_some_and(|newest| newest.name() == run)
    }

    /// When the last of the runs on each machine ended, by UID.
    pub fn ends(&self) -> BTreeMap<String, Timestamp> {
        let mut ends: BTreeMap<String, Timestamp> = BTreeMap::new();
        for run in self.runs.iter().filter(|run| attempts::is_over(run)) {
            for target in attempts::targets(run).into_values() {
                let end = ends.entry(target.uid).or_insert(Timestamp::MIN);
                *end = (*end).max(attempts::ended_at(run).unwrap_or(Timestamp::MIN));
            }
        }
        ends
    }

    /// The next run, with these steps on these machines; its name follows from what is wanted, and from this.
    pub fn request<'r>(&self, steps: Vec<Step>, targets: &'r [Target<'a>], name_of: &str) -> Request<'r, 'a> {
        let attempt = Attempt::from_start(number_after(self.runs.iter().copied()));
        Request::new(self.intent, steps, targets, attempt).named([&self.key, name_of]).rolling_out(&self.key)
    }
}

/// Whether these are the steps of a run, beside those of hooks.
fn plays(run: &PlaybookRun, steps: &[Step]) -> bool {
    run.spec.steps.iter().filter(|step| step.custom().is_none()).eq(steps)
}

/// Runs of an intent that the operator made, the newest first.
pub(super) fn runs<'a>(state: &ClusterState<'a>, intent: Intent) -> Vec<&'a PlaybookRun> {
    state.newest_runs(|run| run.spec.intent == intent && !attempts::targets(run).is_empty())
}

/// Names of the newest of them: by these it is known how often something was tried.
pub(super) fn kept(state: &ClusterState<'_>, intent: Intent, most: usize) -> Vec<String> {
    runs(state, intent).into_iter().take(most).map(|run| run.name().to_owned()).collect()
}
