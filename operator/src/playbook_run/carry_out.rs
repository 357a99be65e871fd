//! Carries out a step; makes no choice.

use crds::PlaybookRun;
use crds::names::finalizer;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use plan::playbook_run::Step;
use serde_json::json;

use super::{access, secrets};
use crate::context::Context;
use crate::error::Error;
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
        Step::Permit(permission) => access::permit(ctx, permission).await,
        Step::Start(job) => {
            let made = execute::create_once(ctx, &**job).await?;
            secrets::ours(made, "Job", &job.name_any())
        }
        Step::Prolong(job, seconds) => {
            let patch = json!({ "spec": { "activeDeadlineSeconds": seconds } });
            execute::patch_if_unchanged(ctx, &**job, patch).await.map(drop)
        }
        Step::StopPod(pod) => execute::delete(ctx, &**pod, None).await,
        Step::KillPod(pod) => execute::delete(ctx, &**pod, Some(0)).await,
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
        Step::Withdraw => access::withdraw(ctx, run).await,
        Step::DropSecrets => {
            secrets::revoke_tokens(ctx, run).await?;
            access::drop_ours::<Secret>(ctx, run).await
        }
        Step::Release => execute::remove_finalizer(ctx, run, finalizer::RUN).await,
    }
}
