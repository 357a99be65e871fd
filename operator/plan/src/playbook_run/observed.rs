//! What the planner of runs looks at.

use crds::cluster_deployment::ExecutorPod;
use crds::inputs::RunInputs;
use crds::names::annotation;
use crds::playbook_run::FrozenSettings;
use crds::{ObjectExt, PlaybookRun, PlaybookRunStatus};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use super::lock::Grant;
use super::trouble::Trouble;
use crate::inputs::InputsProblem;

/// What the run is to work from.
#[derive(Clone, Debug, PartialEq)]
pub enum InputsSeen {
    /// Nobody looked.
    NotLookedAt,
    /// They cannot be frozen.
    Problem(InputsProblem),
    /// A model, either in the run's ConfigMap already or to be written there.
    Model {
        /// The text to freeze, or that is frozen.
        text: String,
        /// The same, parsed.
        model: Box<RunInputs>,
        /// The settings in it that can be edited later; none for a run without a cluster.
        settings: Option<FrozenSettings>,
    },
}

/// What was observed.
#[derive(Clone, Debug)]
pub struct RunObserved<'a> {
    /// The run.
    pub run: &'a PlaybookRun,
    /// Now, in whole seconds.
    pub now: Timestamp,
    /// Image of the executor that is wanted now.
    pub image: &'a str,
    /// What the executor's Pod is given beside.
    pub pod: Option<&'a ExecutorPod>,
    /// While preparing: whether the cluster's lock lets it start.
    pub grant: Grant,
    /// While preparing and allowed to start: the inputs.
    pub inputs: InputsSeen,
    /// Its Job.
    pub job: Option<&'a Job>,
    /// Its Pods; more than one only after somebody meddled.
    pub pods: &'a [Pod],
    /// The newest warning about a Job or Pod that does not come up.
    pub trouble: Option<&'a Trouble>,
    /// The log of the Pod that ended.
    pub log: &'a LogSeen,
}

impl RunObserved<'_> {
    /// A person wants it to stop.
    pub(super) fn stop_is_asked(&self) -> bool {
        self.run.spec.cancel || self.run.is_deleting() || self.is_killed()
    }

    /// A person wants this very run to end at once.
    pub(super) fn is_killed(&self) -> bool {
        let generation = self.run.generation();
        self.kill().is_some_and(|value| value.parse() == Ok(generation))
    }

    /// What to say of a kill that is meant for another generation.
    pub(super) fn ignored_kill(&self) -> Option<String> {
        let value = self.kill().filter(|_| !self.is_killed())?;
        let value: String = value.chars().take(20).collect();
        let generation = self.run.generation();
        Some(format!("annotation {} is ignored: it names generation {value:?}, this is {generation}", annotation::KILL))
    }

    pub(super) fn kill(&self) -> Option<&str> {
        self.run.annotation(annotation::KILL)
    }

    pub(super) fn status(&self) -> PlaybookRunStatus {
        self.run.status.clone().unwrap_or_default()
    }
}

/// The log of the Pod that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogSeen {
    /// There is no Pod to ask.
    #[default]
    NotLookedAt,
    /// Compressed and cut into parts; empty when nothing was written.
    Parts(Vec<Vec<u8>>),
    /// It could not be read now, and why; it is tried again.
    NotYet(String),
    /// It cannot be read, and why.
    Lost(String),
}
