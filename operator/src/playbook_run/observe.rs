//! What a pass looks at: the cache where it does, the API itself before a Job is made or given up.

use std::sync::Arc;

use crds::cluster_deployment::ExecutorPod;
use crds::names::label;
use crds::{ClusterDeployment, PlaybookRun};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use plan::inputs::refused;
use plan::playbook_run::{
    Grant, InputsSeen, LogSeen, RunObserved, Stage, Trouble, grant, has_ended, has_log, stage,
};

use super::{access, inputs, log};
use crate::context::Context;
use crate::error::{Doing, Error};

/// A Pod takes this long to come up; after that a warning is looked for.
const USUAL_START_SECONDS: i64 = 4;

/// What was seen.
pub(super) struct Seen {
    pub run: Arc<PlaybookRun>,
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

impl Seen {
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
}

/// Looks; `None` when the run is gone.
pub(super) async fn observe(
    ctx: &Context,
    run: Arc<PlaybookRun>,
    now: Timestamp,
) -> Result<Option<Seen>, Error> {
    let (namespace, name) = (run.namespace().unwrap_or_default(), run.name_any());
    let mut seen = Seen {
        job: ctx.cache.jobs.get(&namespace, &name).map(|job| (*job).clone()),
        pods: ctx
            .cache
            .pods
            .list(&namespace, |pod| is_of(pod, &name))
            .iter()
            .map(|pod| (**pod).clone())
            .collect(),
        run,
        now,
        image: ctx.settings.executor_image.clone(),
        pod: None,
        grant: Grant::NotLookedAt,
        inputs: InputsSeen::NotLookedAt,
        trouble: None,
        log: LogSeen::NotLookedAt,
    };
    seen.only_ours();
    let absent = seen.job.is_none() || seen.pods.is_empty();
    match stage(&seen.run, seen.job.as_ref(), &seen.pods) {
        Stage::Preparing if !look_again(ctx, &mut seen).await? => return Ok(None),
        // That something is gone is never concluded from a cache.
        Stage::Working if absent && !look_again(ctx, &mut seen).await? => return Ok(None),
        _ => {}
    }
    match stage(&seen.run, seen.job.as_ref(), &seen.pods) {
        Stage::Preparing => preparing(ctx, &mut seen).await?,
        Stage::Working => working(ctx, &mut seen).await?,
        Stage::Releasing | Stage::Over => {}
    }
    Ok(Some(seen))
}

fn is_of(pod: &Pod, run: &str) -> bool {
    pod.labels().get(label::RUN).map(String::as_str) == Some(run)
}

impl Seen {
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

/// True when the object's controller has this UID.
pub(super) fn owned_by<K: ResourceExt>(object: &K, uid: Option<&str>) -> bool {
    let owner = object
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true));
    owner.is_some_and(|owner| Some(owner.uid.as_str()) == uid)
}

/// Reads run, Job and Pods from the API; false when the run is gone.
async fn look_again(ctx: &Context, seen: &mut Seen) -> Result<bool, Error> {
    let (namespace, name) = (seen.run.namespace().unwrap_or_default(), seen.run.name_any());
    let runs: Api<PlaybookRun> = Api::namespaced(ctx.client.clone(), &namespace);
    let run = runs
        .get_opt(&name)
        .await
        .doing(|| format!("read PlaybookRun {name}"))?;
    let Some(run) = run.filter(|run| run.uid() == seen.run.uid()) else {
        return Ok(false);
    };
    seen.run = Arc::new(run);
    let jobs: Api<Job> = Api::namespaced(ctx.client.clone(), &namespace);
    seen.job = jobs.get_opt(&name).await.doing(|| format!("read Job {name}"))?;
    let pods: Api<Pod> = Api::namespaced(ctx.client.clone(), &namespace);
    let params = ListParams::default().labels(&format!("{}={name}", label::RUN));
    seen.pods = pods
        .list(&params)
        .await
        .doing(|| format!("list the Pods of Job {name}"))?
        .items;
    if seen
        .job
        .as_ref()
        .is_some_and(|job| !owned_by(job, seen.run.uid().as_deref()))
    {
        seen.inputs = InputsSeen::Problem(access::name_taken("Job", &name));
    }
    seen.only_ours();
    Ok(true)
}

/// The lock and the inputs, as far as the run needs them.
async fn preparing(ctx: &Context, seen: &mut Seen) -> Result<(), Error> {
    let run = seen.run.clone();
    let holds = run.spec.cancel || run.spec.paused || run.metadata.deletion_timestamp.is_some();
    if holds || refused(&run).is_some() {
        return Ok(());
    }
    let deployment = match &run.spec.cluster_name {
        Some(cluster) => deployment(ctx, &run, cluster).await?,
        None => None,
    };
    seen.image = image(ctx, deployment.as_ref());
    let executor = deployment
        .as_ref()
        .and_then(|deployment| deployment.spec.executor.as_ref());
    seen.pod = executor.and_then(|executor| executor.pod.clone());
    seen.grant = grant(&run, deployment.as_ref());
    if matches!(seen.grant, Grant::Given { .. }) && seen.inputs == InputsSeen::NotLookedAt {
        seen.inputs = inputs::look(ctx, &run, deployment.as_ref()).await?;
    }
    Ok(())
}

/// The image that is wanted for a cluster's executors.
fn image(ctx: &Context, deployment: Option<&ClusterDeployment>) -> String {
    let own = deployment.and_then(|deployment| deployment.spec.executor.as_ref()?.image.clone());
    own.unwrap_or_else(|| ctx.settings.executor_image.clone())
}

/// The ClusterDeployment, read from the API: its lock decides.
pub(super) async fn deployment(
    ctx: &Context,
    run: &PlaybookRun,
    cluster: &str,
) -> Result<Option<ClusterDeployment>, Error> {
    let api: Api<ClusterDeployment> =
        Api::namespaced(ctx.client.clone(), &run.namespace().unwrap_or_default());
    api.get_opt(cluster)
        .await
        .doing(|| format!("read ClusterDeployment {cluster}"))
}

/// The log of what ended, and why what should run does not.
async fn working(ctx: &Context, seen: &mut Seen) -> Result<(), Error> {
    if let Some(pod) = seen.pods.iter().find(|pod| has_log(pod)) {
        seen.log = log::read(ctx, pod).await;
    }
    if seen.pods.iter().any(has_ended) {
        return Ok(());
    }
    let begun = seen.pods.iter().any(|pod| {
        pod.status
            .as_ref()
            .is_some_and(|status| status.phase.as_deref() == Some("Running"))
    });
    let created = seen
        .job
        .as_ref()
        .and_then(|job| job.metadata.creation_timestamp.as_ref());
    let waits_long = created.is_some_and(|at| seen.now.as_second() - at.0.as_second() > USUAL_START_SECONDS);
    if !begun && waits_long {
        let namespace = seen.run.namespace().unwrap_or_default();
        let cluster = seen.run.spec.cluster_name.as_deref();
        let deployment = cluster.and_then(|name| ctx.cache.cluster_deployments.get(&namespace, name));
        seen.image = image(ctx, deployment.as_deref());
        seen.trouble = newest_warning(ctx, seen).await?;
    }
    Ok(())
}

/// The newest warning about the Pod, or about the Job when it has none.
async fn newest_warning(ctx: &Context, seen: &Seen) -> Result<Option<Trouble>, Error> {
    let about = seen
        .pods
        .first()
        .map_or_else(|| seen.run.name_any(), ResourceExt::name_any);
    let events: Api<Event> = Api::namespaced(ctx.client.clone(), &seen.run.namespace().unwrap_or_default());
    let params = ListParams::default().fields(&format!("involvedObject.name={about},type=Warning"));
    let mut events = events
        .list(&params)
        .await
        .doing(|| format!("list the Events of {about}"))?
        .items;
    events.retain(|event| {
        let reason = event.reason.as_deref().unwrap_or_default();
        // Other warnings are about what works nevertheless.
        let holds_up = reason.starts_with("Failed") || matches!(reason, "BackOff" | "InspectFailed");
        holds_up && matches!(event.involved_object.kind.as_deref(), Some("Pod" | "Job"))
    });
    events.sort_by_key(|event| {
        event
            .last_timestamp
            .as_ref()
            .map(|time| time.0)
            .or(event.event_time.as_ref().map(|time| time.0))
    });
    let newest = events.pop();
    Ok(newest.and_then(|event| Some(Trouble::new(event.reason.as_deref()?, event.message.as_deref()?))))
}
