//! The actions of a plan, carried out one by one: on objects of the metadata cluster, and on the Node of the machine's
//! own.

use crds::Machine;
use crds::names::finalizer;
use plan::drain::Refusal;
use plan::machine::{Action, NodeAnswer};
use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::execute;
use crate::remote::{drain, node_metadata};

/// What a cluster's API answered to an action: none of it is an error.
#[derive(Default)]
pub(super) struct Answers {
    /// Evictions that were refused.
    pub refusals: Vec<Refusal>,
    /// Why the Node is not as it was to be written.
    pub node: Option<NodeAnswer>,
}

/// Carries out an action.
pub(super) async fn execute(ctx: &Context, machine: &Machine, action: &Action) -> Result<Answers, Error> {
    let done = match action {
        Action::AddFinalizer => execute::add_finalizer(ctx, machine, finalizer::MACHINE).await,
        Action::RemoveFinalizer => execute::remove_finalizer(ctx, machine, finalizer::MACHINE).await,
        Action::Claim { host, claim, epoch, identity, finalizers } => {
            let patch = json!({
                "metadata": { "finalizers": finalizers },
                "spec": { "claimRef": claim, "claimEpoch": epoch, "identity": identity },
            });
            execute::patch_if_unchanged(ctx, &**host, patch).await.map(drop)
        }
        Action::SetHost(host) => {
            let patch = json!({ "spec": { "hostRef": host } });
            execute::patch_if_unchanged(ctx, machine, patch).await.map(drop)
        }
        Action::ApplyNode { namespace, cluster, write } => {
            return match ctx.remote.client(namespace, cluster) {
                Some(client) => Ok(Answers { node: node_metadata::write(client, write).await, ..Answers::default() }),
                None => Ok(Answers::default()),
            };
        }
        Action::Cordon { namespace, cluster, node, uid } => match ctx.remote.client(namespace, cluster) {
            Some(client) => drain::cordon(client, node, uid).await,
            None => Ok(()),
        },
        Action::Uncordon { namespace, cluster, node, uid } => match ctx.remote.client(namespace, cluster) {
            Some(client) => drain::uncordon(client, node, uid).await,
            None => Ok(()),
        },
        Action::DeleteNode { namespace, cluster, node } => match ctx.remote.client(namespace, cluster) {
            Some(client) => drain::delete_node(client, node).await,
            None => Ok(()),
        },
        Action::Evict { namespace, cluster, pods } => {
            return match ctx.remote.client(namespace, cluster) {
                Some(client) => Ok(Answers { refusals: drain::evict(&client, pods).await, ..Answers::default() }),
                None => Ok(Answers::default()),
            };
        }
        Action::Release { host, finalizers, quarantine, identity } => {
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
    };
    done.map(|()| Answers::default())
}
