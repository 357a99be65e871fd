//! One run: held back until it may start, frozen, given a Job, followed, concluded, and let go. Never branches on what
//! the run is for.

mod conclusion;
mod ending;
mod lock;
mod log;
mod permission;
mod pod;
mod preparing;
mod trouble;
mod working;

use crds::ObjectExt;
use crds::Reason;
use crds::cluster_deployment::ExecutorPod;
use crds::conditions::{self, Statement};
use crds::inputs::RunInputs;
use crds::kstatus::Standing;
use crds::names::{annotation, condition, finalizer};
use crds::playbook_run::{FrozenInputs, FrozenSettings, RunPhase, end};
use crds::{PlaybookRun, PlaybookRunStatus};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::inputs::{InputsProblem, SecretsNeeded};
use crate::{Next, Plan};

pub use lock::{Grant, grant};
pub use log::{LogSeen, has_log};
pub use permission::Permission;
pub use pod::{has_ended, node_of};
pub use trouble::Trouble;

/// The longest message of a status.
const LONGEST_MESSAGE: usize = 1024;

/// How far a run is; it says what must be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has no Job yet: look at the lock and at the inputs, and at the API itself, not at a cache.
    Preparing,
    /// It has, or had, a Job: look at the Pod and its log.
    Working,
    /// The outcome is recorded: what was held is let go.
    Releasing,
    /// Nothing is left to do.
    Over,
}

/// How far the run is.
pub fn stage(run: &PlaybookRun, job: Option<&Job>, pods: &[Pod]) -> Stage {
    let status = run.status.as_ref();
    if status
        .and_then(|status| status.phase)
        .is_some_and(RunPhase::is_final)
    {
        let job_held =
            job.is_some_and(|job| holds(job.metadata.finalizers.as_deref(), finalizer::OUTCOME_RECORDED));
        let pod_held = pods
            .iter()
            .any(|pod| holds(pod.metadata.finalizers.as_deref(), finalizer::OUTCOME_RECORDED));
        let run_held = holds(run.metadata.finalizers.as_deref(), finalizer::RUN);
        return if job_held || pod_held || run_held {
            Stage::Releasing
        } else {
            Stage::Over
        };
    }
    if job.is_some() || status.is_some_and(|status| status.started_at.is_some()) {
        return Stage::Working;
    }
    Stage::Preparing
}

fn holds(finalizers: Option<&[String]>, finalizer: &str) -> bool {
    finalizers
        .unwrap_or_default()
        .iter()
        .any(|there| there == finalizer)
}

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
    fn stop_is_asked(&self) -> bool {
        self.run.spec.cancel || self.run.is_deleting() || self.is_killed()
    }

    /// A person wants this very run to end at once.
    fn is_killed(&self) -> bool {
        let generation = self.run.generation();
        self.kill().is_some_and(|value| value.parse() == Ok(generation))
    }

    /// What to say of a kill that is meant for another generation.
    fn ignored_kill(&self) -> Option<String> {
        let value = self.kill().filter(|_| !self.is_killed())?;
        let value: String = value.chars().take(20).collect();
        let generation = self.run.generation();
        Some(format!(
            "annotation {} is ignored: it names generation {value:?}, this is {generation}",
            annotation::KILL
        ))
    }

    fn kill(&self) -> Option<&str> {
        let annotations = self.run.metadata.annotations.as_ref()?;
        annotations.get(annotation::KILL).map(String::as_str)
    }

    fn status(&self) -> PlaybookRunStatus {
        self.run.status.clone().unwrap_or_default()
    }
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Put the finalizer on the run: from now on it ends in order.
    Hold,
    /// Write model and secrets where nothing changes them any more.
    Freeze {
        /// The immutable ConfigMap.
        config_map: Box<ConfigMap>,
        /// The model, which names the credentials.
        model: Box<RunInputs>,
        /// What the Secret must hold beside the credentials.
        needs: SecretsNeeded,
    },
    /// Let the executor report on this run, and nothing else.
    Permit(Box<Permission>),
    /// Create the Job.
    Start(Box<Job>),
    /// Give the Job this many seconds from its start.
    Prolong(Box<Job>, i64),
    /// Ask the Pod to end; it has its grace period.
    StopPod(Box<Pod>),
    /// End the Pod at once.
    KillPod(Box<Pod>),
    /// Delete the Job, so that it makes no Pod.
    StopJob(Box<Job>),
    /// Keep the log in these ConfigMaps.
    KeepLog(Vec<ConfigMap>),
    /// Take the finalizer off the Pod.
    ReleasePod(Box<Pod>),
    /// Take the finalizer off the Job.
    ReleaseJob(Box<Job>),
    /// Take back what the executor may do: nobody reports any more.
    Withdraw,
    /// Delete the frozen Secret: nobody reads it any more.
    DropSecrets,
    /// Take the finalizer off the run.
    Release,
}

/// Decides.
pub fn playbook_run(observed: &RunObserved<'_>) -> Plan<Step, PlaybookRunStatus> {
    match stage(observed.run, observed.job, observed.pods) {
        Stage::Preparing => preparing::plan(observed),
        Stage::Working => working::plan(observed),
        Stage::Releasing => releasing(observed),
        Stage::Over => Plan {
            steps: Vec::new(),
            status: observed.status(),
            next: Next::OnChange,
            waits_for: None,
        },
    }
}

/// The outcome is recorded: nothing needs to be held any more.
fn releasing(observed: &RunObserved<'_>) -> Plan<Step, PlaybookRunStatus> {
    let held_pods = observed
        .pods
        .iter()
        .filter(|pod| holds(pod.metadata.finalizers.as_deref(), finalizer::OUTCOME_RECORDED));
    let release = |pod: &Pod| match has_ended(pod) || pod.is_deleting() {
        true => Step::ReleasePod(Box::new(pod.clone())),
        // One that came up while its Job was being deleted.
        false => Step::StopPod(Box::new(pod.clone())),
    };
    let mut steps: Vec<Step> = held_pods.map(release).collect();
    if let Some(job) = observed.job
        && holds(job.metadata.finalizers.as_deref(), finalizer::OUTCOME_RECORDED)
    {
        steps.push(Step::ReleaseJob(Box::new(job.clone())));
    }
    if holds(observed.run.metadata.finalizers.as_deref(), finalizer::RUN) {
        steps.extend(let_go());
    }
    Plan {
        steps,
        status: observed.status(),
        next: Next::OnChange,
        waits_for: None,
    }
}

/// What is left of a run that is over.
fn let_go() -> [Step; 3] {
    [Step::Withdraw, Step::DropSecrets, Step::Release]
}

/// Name of the run's ConfigMap, Secret, Job, and of what its executor may do.
fn name_of(run: &PlaybookRun) -> String {
    run.name().to_owned()
}

/// What a frozen model is called, and its digest.
pub fn frozen(run: &PlaybookRun, digest: String) -> FrozenInputs {
    FrozenInputs {
        digest,
        config_map: name_of(run),
        secret: name_of(run),
    }
}

/// The status of a run that is not over.
fn under_way(
    observed: &RunObserved<'_>,
    phase: RunPhase,
    reason: Reason,
    message: &str,
    condition_message: &str,
) -> PlaybookRunStatus {
    let mut status = observed.status();
    status.phase = Some(phase);
    status.message = Some(cut(message));
    let statement = Statement::new(condition::COMPLETE, false, reason, cut(condition_message));
    report(observed, &mut status, Standing::Reconciling, vec![statement]);
    status
}

/// The status of a run that is over.
fn over(
    observed: &RunObserved<'_>,
    phase: RunPhase,
    retriable: bool,
    reason: impl Into<String>,
    message: &str,
) -> PlaybookRunStatus {
    let mut status = observed.status();
    status.phase = Some(phase);
    status.retriable = (phase == RunPhase::Failed).then_some(retriable);
    status.message = Some(cut(message));
    status.finished_at = Some(Time(observed.now));
    let standing = Standing::new(phase == RunPhase::Succeeded, true);
    report(
        observed,
        &mut status,
        standing,
        end(phase, &reason.into(), &cut(message)),
    );
    status
}

/// Where it stands; the first statement says why.
fn report(
    observed: &RunObserved<'_>,
    status: &mut PlaybookRunStatus,
    standing: Standing,
    mut statements: Vec<Statement>,
) {
    if let Some(why) = statements.first().cloned() {
        standing.report(&why, &mut status.conditions, &mut statements);
    }
    state(observed, status, &statements);
}

fn state(observed: &RunObserved<'_>, status: &mut PlaybookRunStatus, statements: &[Statement]) {
    let generation = observed.run.metadata.generation;
    status.observed_generation = generation;
    status.conditions = conditions::state(&status.conditions, statements, generation, &Time(observed.now));
}

/// Within what the schema allows, and without what would disturb a terminal: part of it comes from machines.
fn cut(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let text: String = clean.take(LONGEST_MESSAGE).collect();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests;
