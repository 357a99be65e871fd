//! PlaybookRun: observes a run, its Job and its Pods, and carries out what follows.

mod actions;
mod backup;
pub(crate) mod etcd_client;
pub(crate) mod inputs;
mod log;
mod observe;
mod ownership;
pub(crate) mod registries;
mod report;
mod restore;
mod secrets;

use std::sync::Arc;

use crds::names::label;
use crds::playbook_run::RunPhase;
use crds::{FormerRef, PlaybookRun, PlaybookRunStatus};
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use plan::playbook_run::{Action, playbook_run};
use tokio::task::JoinSet;

use crate::context::Context;
use crate::controller;
use crate::error::Error;
use crate::reconcile::{PlanOf, Reconcile};
pub(crate) use observe::Observation;

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let (of_deployment, of_plane) = (ctx.clone(), ctx.clone());
    let controller = controller::new(ctx, &ctx.cache.runs)
        .watches_shared_stream(ctx.cache.jobs.changes(), |job| run_of(&*job))
        .watches_shared_stream(ctx.cache.pods.changes(), |pod| run_of(&*pod))
        .watches_shared_stream(ctx.cache.cluster_deployments.changes(), move |deployment| {
            let (runs, namespace) = (&of_deployment.cache.runs, deployment.namespace().unwrap_or_default());
            let mut concerned = runs.of_cluster(&namespace, &deployment.name_any());
            concerned.retain(|run| !is_over(run));
            controller::references(&concerned)
        })
        .watches_shared_stream(ctx.cache.karmada_deployments.changes(), move |plane| {
            let (namespace, name) = (plane.namespace().unwrap_or_default(), plane.name_any());
            let mut concerned = of_plane.cache.runs.formed_by(&namespace, FormerRef::plane(&name));
            concerned.retain(|run| !is_over(run));
            controller::references(&concerned)
        });
    tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));
}

fn run_of<K: ResourceExt>(part: &K) -> Option<ObjectRef<PlaybookRun>> {
    let run = part.labels().get(label::RUN)?;
    Some(ObjectRef::new(run).within(&part.namespace()?))
}

fn is_over(run: &PlaybookRun) -> bool {
    let phase = run.status.as_ref().and_then(|status| status.phase);
    phase.is_some_and(RunPhase::is_final)
}

impl Reconcile for Observation {
    type Object = PlaybookRun;
    type Action = Action;

    async fn observe(ctx: &Context, run: Arc<PlaybookRun>) -> Result<Option<Self>, Error> {
        let mut observed = Observation::cached(ctx, run);
        if !observed.is_incomplete() {
            observed.complete(ctx).await?;
        }
        Ok(Some(observed))
    }

    fn object(&self) -> &PlaybookRun {
        &self.run
    }

    fn plan(&self) -> PlanOf<Self> {
        playbook_run(&self.observed())
    }

    fn hold(&self, ctx: &Context, _: &PlanOf<Self>) -> Option<(String, PlaybookRunStatus)> {
        let (namespace, name) = (self.run.namespace().unwrap_or_default(), self.run.name_any());
        let message = ctx.cache.hold_of_run(&namespace, &name)?;
        Some((message, self.run.status.clone().unwrap_or_default()))
    }

    /// A Job is not made, and that something is gone is not concluded, from a cache.
    fn must_refresh(&self, _: &PlanOf<Self>) -> bool {
        self.is_incomplete()
    }

    async fn refresh(mut self, ctx: &Context, _: &PlanOf<Self>) -> Result<Option<Self>, Error> {
        if !self.read_again(ctx).await? {
            return Ok(None);
        }
        self.complete(ctx).await?;
        Ok(Some(self))
    }

    async fn execute(&mut self, ctx: &Context, action: &Action) -> Result<(), Error> {
        actions::execute(ctx, &self.run, action).await
    }

    async fn report(&self, ctx: &Context, plan: &PlanOf<Self>) {
        report::phase(ctx, &self.run, &plan.status).await;
    }
}

#[cfg(test)]
mod tests;
