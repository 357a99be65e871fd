//! Machine: observes one machine, its Host, its runs and its node; claims and gives back Hosts as planned.

use std::sync::Arc;
use std::time::Duration;

use crds::names::{condition, finalizer};
use crds::{ClusterDeployment, Host, Machine, PlaybookRun};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, ListParams};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt};
use plan::claims;
use plan::cluster::NodeSeen;
use plan::machine::{Observed, Step};
use plan::news::news;
use serde_json::json;
use tokio::task::JoinSet;

use crate::cluster_deployment::{now, refs};
use crate::context::Context;
use crate::controller::{self, Pass};
use crate::error::{Doing, Error};
use crate::execute;

/// How long a cluster's API may take to delete a Node.
const REMOTE_DEADLINE: Duration = Duration::from_secs(10);

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let cache = &ctx.cache;
    let (of_host, of_run, of_deployment, of_node) = (ctx.clone(), ctx.clone(), ctx.clone(), ctx.clone());
    let nodes = ctx.remote.changes().flat_map(move |change| {
        let key = &change.cluster;
        let about = |machine: &Machine| {
            machine.spec.cluster_name == key.name
                && match (&change.node, &machine.spec.host_ref) {
                    (Some(node), Some(host)) => *node == host.name,
                    (Some(_), None) => false,
                    (None, _) => true,
                }
        };
        stream::iter(references(&of_node, &key.namespace, about))
    });
    let controller = controller::of(ctx, &cache.machines)
        .watches_shared_stream(cache.hosts.changes(), move |host: Arc<Host>| {
            let name = host.name_any();
            let holder = host.spec.claim_ref.as_ref().map(|claim| claim.uid.clone());
            references(&of_host, &host.namespace().unwrap_or_default(), |machine| {
                claims::is_looking(machine)
                    || (holder.is_some() && machine.uid() == holder)
                    || machine
                        .spec
                        .host_ref
                        .as_ref()
                        .is_some_and(|host| host.name == name)
            })
        })
        .watches_shared_stream(cache.runs.changes(), move |run: Arc<PlaybookRun>| {
            references(&of_run, &run.namespace().unwrap_or_default(), |machine| {
                run.spec.cluster_name.as_deref() == Some(&machine.spec.cluster_name)
                    && machine
                        .spec
                        .host_ref
                        .as_ref()
                        .is_some_and(|host| run.spec.hosts.contains(&host.name))
            })
        })
        .watches_shared_stream(
            cache.cluster_deployments.changes(),
            move |deployment: Arc<ClusterDeployment>| {
                let name = deployment.name_any();
                references(
                    &of_deployment,
                    &deployment.namespace().unwrap_or_default(),
                    |machine| machine.spec.cluster_name == name,
                )
            },
        )
        .reconcile_on(nodes);
    tasks.spawn(controller::run(ctx.clone(), controller, pass));
}

fn references(ctx: &Context, namespace: &str, wanted: impl Fn(&Machine) -> bool) -> Vec<ObjectRef<Machine>> {
    let machines = ctx.cache.machines.list(namespace, wanted);
    machines
        .iter()
        .map(|machine| ObjectRef::from_obj(machine.as_ref()))
        .collect()
}

pub(crate) async fn pass(ctx: Arc<Context>, cached: Arc<Machine>) -> Result<Pass, Error> {
    let (namespace, name) = (cached.namespace().unwrap_or_default(), cached.name_any());
    let cluster = cached.spec.cluster_name.clone();
    let deployment = ctx.cache.cluster_deployments.get(&namespace, &cluster);
    let machines = ctx.cache.machines.list(&namespace, |_| true);
    let nodes = nodes(&ctx, &namespace, &cached);
    let decide = |machine: &Machine, hosts: &[Arc<Host>], runs: &[Arc<PlaybookRun>]| {
        plan::machine::plan(&Observed {
            now: now(),
            machine,
            deployment: deployment.as_deref(),
            machines: &refs(&machines),
            hosts: &refs(hosts),
            runs: &refs(runs),
            nodes: nodes.as_deref(),
        })
    };
    let of_cluster = |run: &PlaybookRun| run.spec.cluster_name.as_deref() == Some(cluster.as_str());
    let mut machine = cached;
    let mut hosts = ctx.cache.hosts.list(&namespace, |_| true);
    let mut runs = ctx.cache.runs.list(&namespace, of_cluster);
    let mut plan = decide(&machine, &hosts, &runs);
    let claims_or_releases = |step: &Step| !matches!(step, Step::AddFinalizer | Step::SetHost(_));
    if plan.steps.iter().any(claims_or_releases) {
        // A Machine never holds two Hosts and never lets go of one that is in use: caches are not believed here.
        let api: Api<Machine> = Api::namespaced(ctx.client.clone(), &namespace);
        let Some(live) = api
            .get_opt(&name)
            .await
            .doing(|| format!("read Machine {name}"))?
        else {
            return Ok(Pass::settled());
        };
        machine = Arc::new(live);
        let all = ListParams::default();
        let api: Api<Host> = Api::namespaced(ctx.client.clone(), &namespace);
        let listed = api.list(&all).await.doing(|| "list the Hosts".into())?;
        hosts = listed.into_iter().map(Arc::new).collect();
        if machine.metadata.deletion_timestamp.is_some() {
            let api: Api<PlaybookRun> = Api::namespaced(ctx.client.clone(), &namespace);
            let listed = api
                .list(&all)
                .await
                .doing(|| format!("list the PlaybookRuns of cluster {cluster}"))?;
            runs = listed
                .into_iter()
                .filter(|run| of_cluster(run))
                .map(Arc::new)
                .collect();
        }
        plan = decide(&machine, &hosts, &runs);
    }
    for step in &plan.steps {
        execute(&ctx, &machine, step).await?;
    }
    if plan.steps.contains(&Step::RemoveFinalizer) {
        return Ok(Pass::of(&plan, false));
    }
    let written = execute::patch_status(&ctx, &*machine, machine.status.as_ref(), &plan.status).await?;
    if written {
        tell(&ctx, &machine, &plan.status.conditions).await;
        tell_repair(&ctx, &machine, &plan.status.conditions).await;
    }
    Ok(Pass::of(&plan, written))
}

/// The machine's own node, in a list of at most one; `None` while nothing is known of the cluster's nodes.
fn nodes(ctx: &Context, namespace: &str, machine: &Machine) -> Option<Vec<NodeSeen>> {
    let name = machine
        .spec
        .host_ref
        .as_ref()
        .map(|host| host.name.as_str())
        .unwrap_or_default();
    let node = ctx.remote.node(namespace, &machine.spec.cluster_name, name)?;
    Some(node.into_iter().collect())
}

async fn execute(ctx: &Context, machine: &Machine, step: &Step) -> Result<(), Error> {
    match step {
        Step::AddFinalizer => execute::add_finalizer(ctx, machine, finalizer::MACHINE).await,
        Step::RemoveFinalizer => execute::remove_finalizer(ctx, machine, finalizer::MACHINE).await,
        Step::Claim {
            host,
            claim,
            epoch,
            finalizers,
        } => {
            let patch = json!({
                "metadata": { "finalizers": finalizers },
                "spec": { "claimRef": claim, "claimEpoch": epoch },
            });
            execute::patch_if_unchanged(ctx, &**host, patch).await.map(drop)
        }
        Step::SetHost(host) => {
            let patch = json!({ "spec": { "hostRef": host } });
            execute::patch_if_unchanged(ctx, machine, patch).await.map(drop)
        }
        Step::DeleteNode {
            namespace,
            cluster,
            node,
        } => delete_node(ctx, namespace, cluster, node).await,
        Step::Release { host, finalizers } => {
            let patch = json!({ "metadata": { "finalizers": finalizers }, "spec": { "claimRef": null } });
            match execute::patch_if_unchanged(ctx, &**host, patch).await {
                Err(error) if error.is_not_found() => Ok(()),
                result => result.map(drop),
            }
        }
    }
}

async fn delete_node(ctx: &Context, namespace: &str, cluster: &str, node: &str) -> Result<(), Error> {
    let Some(client) = ctx.remote.client(namespace, cluster) else {
        return Ok(());
    };
    let nodes: Api<Node> = Api::all(client);
    let params = DeleteParams::default();
    let action = || format!("delete Node {node} of cluster {cluster}");
    let deleted = tokio::time::timeout(REMOTE_DEADLINE, nodes.delete(node, &params)).await;
    match deleted {
        Ok(Err(kube::Error::Api(status))) if status.is_not_found() => Ok(()),
        Ok(result) => result.map(drop).doing(action),
        Err(elapsed) => Err(Error::Failed {
            action: action(),
            source: Box::new(elapsed),
        }),
    }
}

async fn tell(ctx: &Context, machine: &Machine, conditions: &[Condition]) {
    let old = machine
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice())
        .unwrap_or_default();
    let types: &[&str] = match machine.metadata.deletion_timestamp {
        Some(_) => &[condition::DELETING],
        None => &[
            condition::HOST_CLAIMED,
            condition::PROVISIONED,
            condition::NODE_READY,
        ],
    };
    let fine = [
        // The set tells what the pool lacks.
        "NoHost",
        "NodeStarting",
        "Claimed",
        "Claiming",
        "WaitsForHost",
        "WaitsForRun",
        "Provisioning",
        "Provisioned",
        "NodeReady",
        "NodeNotThereYet",
        "NodeNotSeenYet",
        "ClusterNotThereYet",
        "RunUnderWay",
        "WaitsForReset",
        "DeletesNode",
        "ReleasesHost",
        "HostReleased",
    ];
    // What is on its way is no Event: only what came about, and what is wrong.
    let told = ["Claimed", "Provisioned", "NodeReady", "DeletesNode"];
    for news in news(old, conditions, types, |condition| {
        !fine.contains(&condition.reason.as_str())
    }) {
        match news.warning {
            true => ctx.events.warning(machine, &news.reason, &news.note).await,
            false if told.contains(&news.reason.as_str()) => {
                ctx.events.normal(machine, &news.reason, &news.note).await
            }
            false => {}
        }
    }
}

/// What is done about a sick machine, and why nothing is: each decision once.
async fn tell_repair(ctx: &Context, machine: &Machine, conditions: &[Condition]) {
    let old = machine.status.as_ref().map(|status| status.conditions.as_slice());
    let on_the_way = |repair: &Condition| {
        repair.status == "True" || ["Waiting", "Recovered"].contains(&repair.reason.as_str())
    };
    let types = [condition::REMEDIATION];
    for news in news(old.unwrap_or_default(), conditions, &types, |repair| {
        !on_the_way(repair)
    }) {
        match news.warning {
            true => ctx.events.warning(machine, &news.reason, &news.note).await,
            false => ctx.events.normal(machine, &news.reason, &news.note).await,
        }
    }
}
