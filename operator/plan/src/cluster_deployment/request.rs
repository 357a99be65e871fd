//! The runs that a ClusterDeployment asks for: their steps, their names, and what they remember.

use std::collections::BTreeMap;

use crds::ObjectExt;
use crds::playbook_run::PlaybookRunSpec;
use crds::step::{Intent, Role, Step as RunStep};
use crds::{ClusterDeployment, PlaybookRun};
use serde_json::Value;

use super::endpoint;
use super::state::{ClusterMachine, ClusterState};
pub(super) use crate::attempts::number_after;
pub(super) use crate::run_owner::BATCH;
use crate::run_request::{Asker, RunRequest};
pub(super) use crate::run_request::{Attempt, Target, brings_machines};
pub(super) use crate::settings::BACKENDS;

/// A run that is asked for on machines of the cluster, which it remembers.
pub(super) struct Request<'r, 'a> {
    request: RunRequest<'r, 'a>,
    /// Puts hooks around its steps.
    around: fn(&mut PlaybookRunSpec, &ClusterDeployment),
}

impl<'r, 'a> Request<'r, 'a> {
    /// These steps, on these machines.
    pub fn new(intent: Intent, steps: Vec<RunStep>, targets: &'r [Target<'a>], attempt: Attempt) -> Self {
        Self { request: RunRequest::new(intent, steps, targets, attempt), around: |_, _| () }
    }

    /// The same, with a name that follows from these parts.
    pub fn named<const N: usize>(mut self, parts: [&str; N]) -> Self {
        self.request.name_of = Some(parts.iter().map(|part| (*part).to_owned()).collect());
        self
    }

    /// The same, with these variables before those of its cluster.
    pub fn with(mut self, vars: BTreeMap<String, Value>) -> Self {
        self.request.vars = vars;
        self
    }

    /// The same, which rolls this out.
    pub fn rolling_out(mut self, key: &str) -> Self {
        self.request.rolls_out = Some(key.to_owned());
        self
    }

    /// The same, with the hooks that this puts around its steps.
    pub fn around(self, around: fn(&mut PlaybookRunSpec, &ClusterDeployment)) -> Self {
        Self { around, ..self }
    }

    /// The run.
    pub fn run(self, state: &ClusterState<'_>) -> PlaybookRun {
        let asker = Asker { owner: &state.owner, generation: state.generation(), wanted: &state.terms.wanted };
        let mut run = self.request.run(&asker);
        (self.around)(&mut run.spec, state.deployment);
        tell_backends(state, &mut run);
        run
    }
}

/// Tells a run with that step who is behind the endpoint: here, so that it is remembered what the machines were told.
/// What it was given as its own counts before that.
pub(super) fn tell_backends(state: &ClusterState<'_>, run: &mut PlaybookRun) {
    if run.spec.steps.contains(&RunStep::LoadBalancer) {
        let behind: Vec<ClusterMachine<'_>> = state.of_role(Role::ControlPlane).collect();
        run.spec.vars.entry(BACKENDS.into()).or_insert_with(|| endpoint::backends(&behind));
    }
}

/// What an active run does, in other words than those of its intent.
pub(super) fn describe_as(state: &ClusterState<'_>, what: &str, run: &PlaybookRun) -> String {
    let described = describe(state, run);
    let (_, place) = described.split_once(": ").unwrap_or(("", &described));
    format!("{what}: {place}")
}

/// What an active run does, as a clause of the STATUS sentence.
pub(super) fn describe(state: &ClusterState<'_>, run: &PlaybookRun) -> String {
    let verb = run.spec.intent.spec().doing;
    let what = match run.spec.hosts.as_slice() {
        [host] => {
            let members = state.live.iter().chain(&state.leaving);
            let member = members.into_iter().find(|member| member.host_name() == Some(host));
            member.map_or_else(|| host.clone(), ClusterMachine::title)
        }
        hosts => crate::message::count(hosts.len(), "machine"),
    };
    let status = run.status.as_ref();
    let progress = status.and_then(|status| status.progress.as_ref()).filter(|progress| !progress.step.is_empty());
    let place = match progress {
        Some(progress) if progress.total > 0 => {
            format!("{}, task {} of {}", progress.step, progress.done, progress.total)
        }
        Some(progress) => progress.step.clone(),
        None => match status.and_then(|status| status.message.clone()).filter(|message| !message.is_empty()) {
            Some(message) => message,
            None => format!("run {} begins", run.name()),
        },
    };
    format!("{verb} {what}: {place}")
}
