//! How often it was tried to bring machines to what is wanted now.

use crds::names::annotation;
use crds::step::{Intent, Step};
use crds::{ObjectExt, PlaybookRun};

use super::target::Outdated;
use crate::attempts::{self, RetryDecision};
use crate::cluster_deployment::request::{Attempt, Request, Target, number_after};
use crate::cluster_deployment::state::ClusterState;
use crate::provisioning::{self, asked_retries};
use crate::settings;

/// The runs for what is wanted now.
pub(super) struct Tried<'a> {
    /// A digest of what is wanted.
    key: String,
    runs: Vec<&'a PlaybookRun>,
    /// All, the newest first.
    all: Vec<&'a PlaybookRun>,
}

impl<'a> Tried<'a> {
    /// Of these runs, the newest first.
    pub fn new(state: &ClusterState<'a>, all: Vec<&'a PlaybookRun>) -> Self {
        let manifests = &state.observed.manifests;
        let etcd_client = state.observed.etcd_client.and_then(|client| client.as_ref().ok());
        let wanted = provisioning::wanted(state.deployment);
        let key = settings::digest(&(wanted, &manifests.addons, &manifests.network, etcd_client));
        let is_same = |run: &&PlaybookRun| run.annotation(annotation::CONFIGURES) == Some(&key);
        let runs = all.iter().copied().filter(is_same).collect();
        Self { key, runs, all }
    }

    /// Whether the next attempt on the machine is due.
    pub fn decision(&self, state: &ClusterState<'_>, outdated: &Outdated<'_>) -> RetryDecision {
        let machine = outdated.machine.machine;
        let steps = outdated.steps();
        let same: Vec<&PlaybookRun> = self.runs.iter().copied().filter(|run| run.spec.steps == steps).collect();
        let tried = attempts::tried(&same, &[Intent::Configure], machine.uid());
        let policy = provisioning::limited(state.deployment, asked_retries(machine, state.deployment));
        attempts::retry_decision(&tried, &policy, state.observed.now)
    }

    /// Whether the machine was brought to what is wanted by the last run on it, and differs all the same: it would be so
    /// for ever.
    pub fn is_in_vain(&self, state: &ClusterState<'_>, outdated: &Outdated<'_>) -> bool {
        let RetryDecision::Done { run, .. } = self.decision(state, outdated) else { return false };
        let (uid, steps) = (outdated.machine.uid(), outdated.steps());
        let is_same = |run: &&&PlaybookRun| run.spec.steps == steps && attempts::is_about(run, uid);
        self.all.iter().find(is_same).is_some_and(|newest| newest.name() == run)
    }

    /// The next run, with these steps on these machines.
    pub fn run(&self, state: &ClusterState<'_>, steps: Vec<Step>, targets: &[Target<'_>]) -> PlaybookRun {
        let attempt = Attempt::from_start(number_after(self.runs.iter().copied()));
        let mut run = Request::new(Intent::Configure, steps, targets, attempt).named([&self.key]).run(state);
        run.metadata.annotations.get_or_insert_default().insert(annotation::CONFIGURES.to_owned(), self.key.clone());
        run
    }
}
