//! Writes into a cluster: an annotation of its Nodes, where its DNS runs, and what becomes of the Nodes of
//! forgotten machines.

use crds::Cluster;
use crds::Reason;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use plan::cluster::dns::DEPLOYMENT;
use plan::cluster::{Action, OrphanNode};
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::remote::{Key, drain};

/// Carries out one action through the cluster's API.
pub(super) async fn execute(ctx: &Context, cluster: &Cluster, key: &Key, action: &Action) -> Result<(), Error> {
    let Some(client) = ctx.remote.client(&key.namespace, &key.name) else {
        return Ok(());
    };
    let api: Api<Node> = Api::all(client.clone());
    match action {
        // They are no acts of the cluster's API.
        Action::AddFinalizer | Action::RemoveFinalizer => Ok(()),
        Action::SpreadDns { patch } => {
            let deployments: Api<Deployment> = Api::namespaced(client, "kube-system");
            let patched = deployments.patch(DEPLOYMENT, &params(), &Patch::Merge(patch)).await;
            let patched = gone_is_well(patched.map(drop));
            patched.doing(|| format!("patch Deployment {DEPLOYMENT} of cluster {}", key.name))
        }
        Action::MoveDnsPod { pod, tells } => {
            let refusals = drain::evict(&client, std::slice::from_ref(pod)).await;
            match refusals.first() {
                Some(refusal) => {
                    // It is asked again the next time.
                    let budgets = refusal.budgets.join(", ");
                    tracing::info!(
                        cluster = key.name,
                        pod = pod.name,
                        budgets,
                        answer = refusal.message,
                        "eviction refused"
                    );
                }
                None => ctx.events.normal(cluster, Reason::DNSPodMoved, tells).await,
            }
            Ok(())
        }
        Action::PatchNode { name, patch } => {
            let patched = patch_node(&api, name, patch).await;
            patched.doing(|| format!("patch Node {name} of cluster {}", key.name))
        }
        Action::CordonOrphan(orphan) => {
            let patch = json!({ "metadata": { "uid": orphan.uid }, "spec": { "unschedulable": true } });
            let cordoned = patch_node(&api, &orphan.name, &patch).await;
            let cordoned = gone_is_well(cordoned);
            cordoned.doing(|| format!("cordon Node {} of cluster {}", orphan.name, key.name))?;
            tell(ctx, cluster, orphan).await;
            Ok(())
        }
        Action::DeleteOrphan(orphan) => {
            let params = DeleteParams {
                preconditions: Some(Preconditions { uid: Some(orphan.uid.clone()), resource_version: None }),
                ..DeleteParams::default()
            };
            let deleted = gone_is_well(api.delete(&orphan.name, &params).await.map(drop));
            deleted.doing(|| format!("delete Node {} of cluster {}", orphan.name, key.name))?;
            tell(ctx, cluster, orphan).await;
            Ok(())
        }
    }
}

async fn patch_node(api: &Api<Node>, name: &str, patch: &Value) -> Result<(), kube::Error> {
    api.patch(name, &params(), &Patch::Merge(patch)).await.map(drop)
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(crds::names::FIELD_MANAGER.into()), ..PatchParams::default() }
}

/// A Node that is gone, or another one by now, is looked at again the next time.
fn gone_is_well(result: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match result {
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
        other => other,
    }
}

/// Of its Host, where there is one: whoever looks after the machine looks there.
async fn tell(ctx: &Context, cluster: &Cluster, orphan: &OrphanNode) {
    match (&orphan.tells, &orphan.host) {
        (Some(note), Some(host)) => ctx.events.warning(&**host, Reason::ForgottenMachineIsBack, note).await,
        (Some(note), None) => ctx.events.warning(cluster, Reason::ForgottenMachineIsBack, note).await,
        (None, _) => {}
    }
}
