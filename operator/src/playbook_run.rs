//! The controller of PlaybookRuns: looks, lets `plan::playbook_run` decide, does it, says so.

mod access;
mod carry_out;
pub(crate) mod inputs;
mod log;
mod observe;
mod secrets;

use std::sync::Arc;
use std::time::Duration;

use crds::names::label;
use crds::playbook_run::RunPhase;
use crds::{PlaybookRun, PlaybookRunStatus};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use plan::playbook_run::playbook_run;
use tokio::task::JoinSet;

use crate::context::Context;
use crate::controller::{self, Pass};
use crate::error::Error;
use crate::execute;

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let runs = ctx.cache.runs.store().clone();
    let controller = controller::of(ctx, &ctx.cache.runs)
        .watches_shared_stream(ctx.cache.jobs.changes(), |job| run_of(&*job))
        .watches_shared_stream(ctx.cache.pods.changes(), |pod| run_of(&*pod))
        .watches_shared_stream(ctx.cache.cluster_deployments.changes(), move |deployment| {
            let (namespace, name) = (deployment.namespace(), deployment.name_any());
            let concerned = runs.state_filter(|run| {
                run.namespace() == namespace && run.spec.cluster_name.as_ref() == Some(&name) && !is_over(run)
            });
            concerned
                .iter()
                .map(|run| ObjectRef::from_obj(&**run))
                .collect::<Vec<_>>()
        });
    tasks.spawn(controller::run(ctx.clone(), controller, pass));
}

fn run_of<K: ResourceExt>(part: &K) -> Option<ObjectRef<PlaybookRun>> {
    let run = part.labels().get(label::RUN)?;
    Some(ObjectRef::new(run).within(&part.namespace()?))
}

fn is_over(run: &PlaybookRun) -> bool {
    phase_of(run.status.as_ref()).is_some_and(RunPhase::is_final)
}

fn phase_of(status: Option<&PlaybookRunStatus>) -> Option<RunPhase> {
    status.and_then(|status| status.phase)
}

async fn pass(ctx: Arc<Context>, run: Arc<PlaybookRun>) -> Result<Pass, Error> {
    // Times in a status are whole seconds.
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or(Timestamp::UNIX_EPOCH);
    let Some(seen) = observe::observe(&ctx, run, now).await? else {
        return Ok(Pass::settled());
    };
    let (namespace, name) = (seen.run.namespace().unwrap_or_default(), seen.run.name_any());
    if let Some(message) = ctx.cache.hold_of_run(&namespace, &name) {
        return Ok(Pass::held(message));
    }
    let plan = playbook_run(&seen.observed());
    for step in &plan.steps {
        carry_out::step(&ctx, &seen.run, step).await?;
    }
    let written = execute::patch_status(&ctx, &*seen.run, seen.run.status.as_ref(), &plan.status).await?;
    if written {
        tell(&ctx, &seen.run, &plan.status).await;
    }
    Ok(Pass::of(&plan, written))
}

/// Tells a change of phase.
async fn tell(ctx: &Context, run: &PlaybookRun, status: &PlaybookRunStatus) {
    let (before, after) = (phase_of(run.status.as_ref()), status.phase);
    let Some(phase) = after.filter(|_| before != after) else {
        return;
    };
    let message = status.message.as_deref().unwrap_or_default();
    let reason = format!("{phase:?}");
    match phase {
        RunPhase::Pending => {}
        RunPhase::Running | RunPhase::Succeeded => ctx.events.normal(run, &reason, message).await,
        RunPhase::Failed | RunPhase::Canceled | RunPhase::DeadlineExceeded | RunPhase::Unknown => {
            ctx.events.warning(run, &reason, message).await;
        }
    }
    if phase.is_final() {
        let (begun, ended) = (status.started_at.as_ref(), status.finished_at.as_ref());
        let took = begun
            .zip(ended)
            .map_or(0, |(begun, ended)| ended.0.as_second() - begun.0.as_second());
        let took = Duration::from_secs(u64::try_from(took).unwrap_or(0));
        ctx.metrics.run_ended(run.spec.intent.spec().slug, &reason, took);
    }
}

#[cfg(test)]
mod tests;
