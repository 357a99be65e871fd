//! The actions of a plan, carried out one by one.

use crds::PlaybookRun;
use crds::names::finalizer;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use plan::playbook_run::Action;
use serde_json::json;

use super::ownership::drop_ours;
use super::secrets;
use crate::context::Context;
use crate::error::Error;
use crate::{execute, executor_job, permission};

/// Carries out an action.
pub(super) async fn execute(ctx: &Context, run: &PlaybookRun, action: &Action) -> Result<(), Error> {
    match action {
        Action::Hold => execute::add_finalizer(ctx, run, finalizer::RUN).await,
        Action::Freeze { config_map, model, needs } => {
            // The ConfigMap last: where it is, the Secret is, too.
            secrets::freeze(ctx, run, model, needs).await?;
            execute::create_ours(ctx, &**config_map).await
        }
        Action::MakeReceiver(secret) => execute::create_ours(ctx, &**secret).await,
        Action::Permit(granted) => permission::permit(ctx, granted).await,
        Action::Start(job) => executor_job::create(ctx, job).await,
        Action::Prolong(job, seconds) => {
            let patch = json!({ "spec": { "activeDeadlineSeconds": seconds } });
            execute::patch_if_unchanged(ctx, &**job, patch).await.map(drop)
        }
        Action::StopPod(pod) => execute::delete(ctx, &**pod, None).await,
        Action::KillPod(pod) => execute::delete(ctx, &**pod, Some(0)).await,
        Action::StopJob(job) => execute::delete(ctx, &**job, None).await,
        Action::KeepLog(parts) => {
            for part in parts {
                match execute::create_once(ctx, part).await {
                    // The log goes with the namespace; the Pod and the Job are still to be let go.
                    Err(error) if error.is_namespace_going() => return Ok(()),
                    made => made.map(drop)?,
                }
            }
            Ok(())
        }
        Action::ReleasePod(pod) => execute::remove_finalizer(ctx, &**pod, finalizer::OUTCOME_RECORDED).await,
        Action::ReleaseJob(job) => execute::remove_finalizer(ctx, &**job, finalizer::OUTCOME_RECORDED).await,
        Action::Withdraw => {
            let (namespace, name) = (run.namespace().unwrap_or_default(), run.name_any());
            permission::withdraw(ctx, &namespace, &name, run.uid().as_deref()).await
        }
        Action::DropSecrets => {
            secrets::revoke_tokens(ctx, run).await?;
            drop_ours::<Secret>(ctx, run).await
        }
        Action::Release => execute::remove_finalizer(ctx, run, finalizer::RUN).await,
    }
}
