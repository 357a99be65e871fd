//! Carries out a step; makes no choice.

use crds::PlaybookRun;
use crds::names::finalizer;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt};
use plan::playbook_run::Step;

use super::observe::owned_by;
use super::{access, secrets};
use crate::context::Context;
use crate::error::{Doing, Error};
use crate::execute;

/// Carries out a step of a run.
pub(super) async fn step(ctx: &Context, run: &PlaybookRun, step: &Step) -> Result<(), Error> {
    match step {
        Step::Hold => execute::add_finalizer(ctx, run, finalizer::RUN).await,
        Step::Freeze {
            config_map,
            model,
            needs,
        } => {
            // The ConfigMap last: where it is, the Secret is, too.
            secrets::freeze(ctx, run, model, needs).await?;
            let made = execute::create_once(ctx, &**config_map).await?;
            secrets::ours(made, "ConfigMap", &config_map.name_any())
        }
        Step::PermitExecutor => access::permit(ctx, run).await,
        Step::Start(job) => {
            let made = execute::create_once(ctx, &**job).await?;
            secrets::ours(made, "Job", &job.name_any())
        }
        Step::StopPod(pod) => execute::delete(ctx, &**pod, None).await,
        Step::StopJob(job) => execute::delete(ctx, &**job, None).await,
        Step::KeepLog(parts) => {
            for part in parts {
                match execute::create_once(ctx, part).await {
                    // The log goes with the namespace; the Pod and the Job are still to be let go.
                    Err(error) if error.is_namespace_going() => return Ok(()),
                    made => made.map(drop)?,
                }
            }
            Ok(())
        }
        Step::ReleasePod(pod) => execute::remove_finalizer(ctx, &**pod, finalizer::OUTCOME_RECORDED).await,
        Step::ReleaseJob(job) => execute::remove_finalizer(ctx, &**job, finalizer::OUTCOME_RECORDED).await,
        Step::DropSecrets => drop_secrets(ctx, run).await,
        Step::Release => execute::remove_finalizer(ctx, run, finalizer::RUN).await,
    }
}

async fn drop_secrets(ctx: &Context, run: &PlaybookRun) -> Result<(), Error> {
    let name = run.name_any();
    let api: Api<Secret> = Api::namespaced(ctx.client.clone(), &run.namespace().unwrap_or_default());
    let secret = api.get_opt(&name).await.doing(|| format!("read Secret {name}"))?;
    match secret.filter(|secret| owned_by(secret, run.uid().as_deref())) {
        Some(secret) => execute::delete(ctx, &secret, None).await,
        None => Ok(()),
    }
}
