//! The runs that a ClusterDeployment asks for: their steps, their names, and what they remember.

use std::collections::BTreeMap;

use crds::ObjectExt;
use crds::names::annotation;
use crds::playbook_run::PlaybookRunSpec;
use crds::step::{Intent, Role, Step as RunStep};
use crds::{ClusterDeployment, PlaybookRun};
use serde_json::Value;

use super::endpoint;
use super::state::{ClusterMachine, ClusterState};
use crate::attempts::TargetRecord;
pub(super) use crate::attempts::number_after;
use crate::naming;
pub(super) use crate::run_owner::BATCH;
pub(super) use crate::settings::BACKENDS;

/// A machine of a run, with the retry that it answers.
pub(super) type Target<'a> = (ClusterMachine<'a>, Option<String>);

/// Which attempt a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Attempt {
    /// How often the same was tried before.
    pub number: i32,
    /// It goes on where the one before it stopped.
    pub resume: bool,
}

impl Attempt {
    pub const FIRST: Self = Self::from_start(0);

    /// All steps are played.
    pub const fn from_start(number: i32) -> Self {
        Self { number, resume: false }
    }
}

/// A run that is asked for on machines of the cluster, which it remembers.
pub(super) struct Request<'r, 'a> {
    pub intent: Intent,
    pub steps: Vec<RunStep>,
    pub targets: &'r [Target<'a>],
    pub attempt: Attempt,
    /// What its name follows from, where that is not the machines that it works on.
    pub name_of: Option<Vec<String>>,
    /// Variables that it has before those of its cluster.
    pub vars: BTreeMap<String, Value>,
    /// Puts hooks around its steps.
    pub around: fn(&mut PlaybookRunSpec, &ClusterDeployment),
    /// What it rolls out, where such runs are told from others by that.
    pub rolls_out: Option<String>,
}

impl<'r, 'a> Request<'r, 'a> {
    /// These steps, on these machines.
    pub fn new(intent: Intent, steps: Vec<RunStep>, targets: &'r [Target<'a>], attempt: Attempt) -> Self {
        Self {
            intent,
            steps,
            targets,
            attempt,
            name_of: None,
            vars: BTreeMap::new(),
            around: |_, _| (),
            rolls_out: None,
        }
    }

    /// The same, with a name that follows from these parts.
    pub fn named<const N: usize>(self, parts: [&str; N]) -> Self {
        let parts = parts.iter().map(|part| (*part).to_owned()).collect();
        Self { name_of: Some(parts), ..self }
    }

    /// The same, with these variables before those of its cluster.
    pub fn with(self, vars: BTreeMap<String, Value>) -> Self {
        Self { vars, ..self }
    }

    /// The same, which rolls this out.
    pub fn rolling_out(self, key: &str) -> Self {
        Self { rolls_out: Some(key.to_owned()), ..self }
    }

    /// The same, with the hooks that this puts around its steps.
    pub fn around(self, around: fn(&mut PlaybookRunSpec, &ClusterDeployment)) -> Self {
        Self { around, ..self }
    }

    /// The run.
    pub fn run(self, state: &ClusterState<'_>) -> PlaybookRun {
        let Self { intent, attempt, .. } = self;
        let target = |(machine, retry): &Target<'_>| {
            let target = TargetRecord {
                uid: machine.uid().to_owned(),
                retry: retry.clone(),
                host_generation: machine.host.and_then(|host| host.metadata.generation),
            };
            Some((machine.host_name()?.to_owned(), target))
        };
        let targets: BTreeMap<String, TargetRecord> = self.targets.iter().filter_map(target).collect();
        let uids = || targets.values().map(|target| target.uid.clone()).collect();
        let parts: Vec<String> = self.name_of.unwrap_or_else(uids);
        let parts = parts.iter().map(String::as_str);
        let name = naming::run(&state.name, state.uid(), intent, parts, attempt.number);
        let hosts = targets.keys().cloned().collect();
        let mut run = state.owner.run(&name, intent, self.steps, hosts, attempt.number);
        (self.around)(&mut run.spec, state.deployment);
        run.spec.resume = attempt.resume;
        tell_backends(state, &mut run);
        run.spec.vars.extend(self.vars);
        let annotations = run.metadata.annotations.get_or_insert_default();
        annotations.extend([
            (annotation::MACHINES.to_owned(), serde_json::to_string(&targets).unwrap_or_default()),
            (annotation::GENERATION.to_owned(), state.generation().to_string()),
            (annotation::WANTED.to_owned(), state.terms.wanted.clone()),
        ]);
        annotations.extend(self.rolls_out.map(|key| (annotation::ROLLS_OUT.to_owned(), key)));
        run
    }
}

/// Tells a run with that step who is behind the endpoint: here, so that it is remembered what the machines were told.
pub(super) fn tell_backends(state: &ClusterState<'_>, run: &mut PlaybookRun) {
    if run.spec.steps.contains(&RunStep::LoadBalancer) {
        let behind: Vec<ClusterMachine<'_>> = state.of_role(Role::ControlPlane).collect();
        run.spec.vars.insert(BACKENDS.into(), endpoint::backends(&behind));
    }
}

/// Whether a run brings machines to the cluster, or makes them ready for that.
pub(super) fn brings_machines(run: &PlaybookRun) -> bool {
    [Intent::Prepare, Intent::Join].contains(&run.spec.intent)
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
