//! The steps of a plan, carried out one by one: on objects of the metadata cluster, and on the Node of the machine's
//! own.

use crds::Machine;
use crds::names::finalizer;
use plan::machine::Step;
use plan::machine::leaving::drain::Refusal;
use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::execute;
use crate::remote::drain;

/// Carries out the evictions of a plan; none: there are none. What is refused is no error.
pub(super) async fn evict(ctx: &Context, steps: &[Step]) -> Option<Vec<Refusal>> {
    let (client, pods) = steps.iter().find_map(|step| match step {
        Step::Evict {
            namespace,
            cluster,
            pods,
        } => Some((ctx.remote.client(namespace, cluster)?, pods)),
        _ => None,
    })?;
    Some(drain::evict(&client, pods).await)
}

/// Carries out a step.
pub(super) async fn execute(ctx: &Context, machine: &Machine, step: &Step) -> Result<(), Error> {
    match step {
        Step::AddFinalizer => execute::add_finalizer(ctx, machine, finalizer::MACHINE).await,
        Step::RemoveFinalizer => execute::remove_finalizer(ctx, machine, finalizer::MACHINE).await,
        Step::Claim {
            host,
            claim,
            epoch,
            identity,
            finalizers,
        } => {
            let patch = json!({
                "metadata": { "finalizers": finalizers },
                "spec": { "claimRef": claim, "claimEpoch": epoch, "identity": identity },
            });
            execute::patch_if_unchanged(ctx, &**host, patch).await.map(drop)
        }
        Step::SetHost(host) => {
            let patch = json!({ "spec": { "hostRef": host } });
            execute::patch_if_unchanged(ctx, machine, patch).await.map(drop)
        }
        Step::Cordon {
            namespace,
            cluster,
            node,
        } => match ctx.remote.client(namespace, cluster) {
            Some(client) => drain::cordon(client, node).await,
            None => Ok(()),
        },
        Step::DeleteNode {
            namespace,
            cluster,
            node,
        } => match ctx.remote.client(namespace, cluster) {
            Some(client) => drain::delete_node(client, node).await,
            None => Ok(()),
        },
        // What it is answered is for the plan.
        Step::Evict { .. } => Ok(()),
        Step::Release {
            host,
            finalizers,
            quarantine,
            identity,
        } => {
            let spec = json!({ "claimRef": null, "identity": identity });
            let mut patch = json!({ "metadata": { "finalizers": finalizers }, "spec": spec });
            if let Some(quarantine) = quarantine {
                patch["spec"]["quarantine"] = json!(quarantine);
            }
            match execute::patch_if_unchanged(ctx, &**host, patch).await {
                Err(error) if error.is_not_found() => Ok(()),
                result => result.map(drop),
            }
        }
    }
}
