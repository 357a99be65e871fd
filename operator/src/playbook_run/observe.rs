//! What is observed of a run: the cache where it does, the API itself before a Job is made or given up.

use std::sync::Arc;

use crds::PlaybookRun;
use crds::cluster_deployment::ExecutorPod;
use crds::names::label;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use plan::inputs::refused;
use plan::playbook_run::{Grant, InputsSeen, LogSeen, RunObserved, Stage, Trouble, grant, has_ended, has_log, stage};

use super::ownership::name_taken;
use super::{inputs, log};
use crate::cache::IndexKey;
use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::former::Former;
use crate::live;
use crate::owned::owned_by;
use crate::reconcile::now;

/// A Pod takes this long to come up; after that a warning is looked for.
const USUAL_START_SECONDS: i64 = 4;

/// What is known of a run.
pub(crate) struct Observation {
    pub(super) run: Arc<PlaybookRun>,
    now: Timestamp,
    image: String,
    pod: Option<ExecutorPod>,
    grant: Grant,
    inputs: InputsSeen,
    job: Option<Job>,
    pods: Vec<Pod>,
    trouble: Option<Trouble>,
    log: LogSeen,
}

impl Observation {
    /// Run, Job and Pods, as the cache shows them.
    pub(super) fn cached(ctx: &Context, run: Arc<PlaybookRun>) -> Self {
        let (namespace, name) = (run.namespace().unwrap_or_default(), run.name_any());
        let pods = ctx.cache.pods.with(&namespace, &IndexKey::Run(name.clone()));
        let mut observed = Self {
            job: ctx.cache.jobs.get(&namespace, &name).map(|job| (*job).clone()),
            pods: pods.iter().map(|pod| (**pod).clone()).collect(),
            run,
            now: now(),
            image: ctx.settings.executor_image.clone(),
            pod: None,
            grant: Grant::NotLookedAt,
            inputs: InputsSeen::NotLookedAt,
            trouble: None,
            log: LogSeen::NotLookedAt,
        };
        observed.only_ours();
        observed
    }

    pub(super) fn observed(&self) -> RunObserved<'_> {
        RunObserved {
            run: &self.run,
            now: self.now,
            image: &self.image,
            pod: self.pod.as_ref(),
            grant: self.grant.clone(),
            inputs: self.inputs.clone(),
            job: self.job.as_ref(),
            pods: &self.pods,
            trouble: self.trouble.as_ref(),
            log: &self.log,
        }
    }

    fn stage(&self) -> Stage {
        stage(&self.run, self.job.as_ref(), &self.pods)
    }

    /// Whether the cache is not enough: a Job is to be made, something is not there, or the executor has ended, and
    /// what it reported last may not have come yet.
    pub(super) fn is_incomplete(&self) -> bool {
        match self.stage() {
            Stage::Preparing => true,
            Stage::Working => self.job.is_none() || self.pods.is_empty() || self.pods.iter().any(has_ended),
            Stage::Releasing | Stage::Over => false,
        }
    }

    /// Adds what the run's stage needs beside its parts.
    pub(super) async fn complete(&mut self, ctx: &Context) -> Result<(), Error> {
        match self.stage() {
            Stage::Preparing => preparing(ctx, self).await,
            Stage::Working => working(ctx, self).await,
            Stage::Releasing | Stage::Over => Ok(()),
        }
    }

    /// Reads Job, Pods and run from the API, the run last: a Pod that has ended has reported before. False when the run
    /// is gone.
    pub(super) async fn read_again(&mut self, ctx: &Context) -> Result<bool, Error> {
        let (namespace, name) = (self.run.namespace().unwrap_or_default(), self.run.name_any());
        self.job = live::get(ctx, &namespace, &name).await?;
        let pods: Api<Pod> = Api::namespaced(ctx.client.clone(), &namespace);
        let params = ListParams::default().labels(&format!("{}={name}", label::RUN));
        let listed = pods.list(&params).await;
        self.pods = listed.doing(|| format!("list the Pods of Job {name}"))?.items;
        let run = live::get::<PlaybookRun>(ctx, &namespace, &name).await?;
        let Some(run) = run.filter(|run| run.uid() == self.run.uid()) else {
            return Ok(false);
        };
        self.run = Arc::new(run);
        let is_foreign = |job: &Job| !owned_by(job, self.run.uid().as_deref());
        if self.job.as_ref().is_some_and(is_foreign) {
            self.inputs = InputsSeen::Problem(name_taken("Job", &name));
        }
        self.only_ours();
        Ok(true)
    }

    /// Leaves out what an earlier run of the same name has left.
    fn only_ours(&mut self) {
        let run = self.run.uid();
        self.job = self.job.take().filter(|job| owned_by(job, run.as_deref()));
        if let Some(job) = &self.job {
            let job = job.uid();
            self.pods.retain(|pod| owned_by(pod, job.as_deref()));
        }
    }
}

/// The lock and the inputs, as far as the run needs them.
async fn preparing(ctx: &Context, observed: &mut Observation) -> Result<(), Error> {
    let run = observed.run.clone();
    let holds = run.spec.cancel || run.spec.paused || run.metadata.deletion_timestamp.is_some();
    if holds || refused(&run).is_some() {
        return Ok(());
    }
    let former = match run.spec.former() {
        // From the API: its lock decides.
        Some(former) => Former::live(ctx, &run.namespace().unwrap_or_default(), former).await?,
        None => None,
    };
    observed.image = image(ctx, former.as_ref());
    let executor = former.as_ref().and_then(Former::executor);
    observed.pod = executor.and_then(|executor| executor.pod.clone());
    observed.grant = grant(&run, run.spec.cluster_kind.as_str(), former.as_ref().map(Former::lock));
    if matches!(observed.grant, Grant::Given { .. }) && observed.inputs == InputsSeen::NotLookedAt {
        observed.inputs = inputs::look(ctx, &run, former.as_ref()).await?;
    }
    Ok(())
}

/// The image that is wanted for a cluster's executors.
fn image(ctx: &Context, former: Option<&Former>) -> String {
    let own = former.and_then(|former| former.executor()?.image.clone());
    own.unwrap_or_else(|| ctx.settings.executor_image.clone())
}

/// The log of what ended, and why what should run does not.
async fn working(ctx: &Context, observed: &mut Observation) -> Result<(), Error> {
    if let Some(pod) = observed.pods.iter().find(|pod| has_log(pod)) {
        observed.log = log::read(ctx, pod).await;
    }
    if observed.pods.iter().any(has_ended) {
        return Ok(());
    }
    let begun = observed
        .pods
        .iter()
        .any(|pod| pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running")));
    let created = observed.job.as_ref().and_then(|job| job.metadata.creation_timestamp.as_ref());
    let waits_long = created.is_some_and(|at| observed.now.as_second() - at.0.as_second() > USUAL_START_SECONDS);
    if !begun && waits_long {
        let namespace = observed.run.namespace().unwrap_or_default();
        let former = observed.run.spec.former();
        let former = former.and_then(|former| Former::cached(&ctx.cache, &namespace, former));
        observed.image = image(ctx, former.as_ref());
        observed.trouble = newest_warning(ctx, observed).await?;
    }
    Ok(())
}

/// The newest warning about the Pod, or about the Job when it has none.
async fn newest_warning(ctx: &Context, observed: &Observation) -> Result<Option<Trouble>, Error> {
    let about = observed.pods.first().map_or_else(|| observed.run.name_any(), ResourceExt::name_any);
    let events: Api<Event> = Api::namespaced(ctx.client.clone(), &observed.run.namespace().unwrap_or_default());
    let params = ListParams::default().fields(&format!("involvedObject.name={about},type=Warning"));
    let mut events = events.list(&params).await.doing(|| format!("list the Events of {about}"))?.items;
    events.retain(|event| {
        let reason = event.reason.as_deref().unwrap_or_default();
        // Other warnings are about what works nevertheless.
        let holds_up = reason.starts_with("Failed") || matches!(reason, "BackOff" | "InspectFailed");
        holds_up && matches!(event.involved_object.kind.as_deref(), Some("Pod" | "Job"))
    });
    events.sort_by_key(|event| {
        event.last_timestamp.as_ref().map(|time| time.0).or(event.event_time.as_ref().map(|time| time.0))
    });
    let newest = events.pop();
    Ok(newest.and_then(|event| Some(Trouble::new(event.reason.as_deref()?, event.message.as_deref()?))))
}
