//! Machine: observes one machine, its Host, its runs and its node; claims and gives back Hosts as planned.

use std::sync::Arc;

use crds::names::{condition, finalizer};
use crds::step::Role;
use crds::{ClusterDeployment, Host, Machine, PlaybookRun};
use futures::{StreamExt, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::ListParams;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt};
use plan::claims;
use plan::cluster::NodeSeen;
use plan::machine::leaving::drain::{Drain, Refusal};
use plan::machine::leaving::looks_at_pods;
use plan::machine::{Observed, Step};
use plan::news::news;
use serde_json::json;
use tokio::task::JoinSet;

use crate::cluster_deployment::{now, refs};
use crate::context::Context;
use crate::controller::{self, Pass};
use crate::error::{Doing, Error};
use crate::execute;
use crate::remote::drain;

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
    let seen = ctx.cache.clusters.get(&namespace, &cluster);
    let with = |machine: &Machine, hosts: &[Arc<Host>], runs: &[Arc<PlaybookRun>], drain: Option<&Drain>| {
        let (machines, hosts, runs) = (refs(&machines), refs(hosts), refs(runs));
        let observed = Observed {
            now: now(),
            machine,
            deployment: deployment.as_deref(),
            machines: &machines,
            hosts: &hosts,
            runs: &runs,
            nodes: nodes.as_deref(),
            cluster: seen.as_deref(),
            drain,
        };
        (plan::machine::plan(&observed), looks_at_pods(&observed))
    };
    let of_cluster = |run: &PlaybookRun| run.spec.cluster_name.as_deref() == Some(cluster.as_str());
    let mut machine = cached;
    let mut hosts = ctx.cache.hosts.list(&namespace, |_| true);
    let mut runs = ctx.cache.runs.list(&namespace, of_cluster);
    let (mut plan, looks) = with(&machine, &hosts, &runs, None);
    let mut drain = None;
    if looks && let Some(client) = ctx.remote.client(&namespace, &cluster) {
        drain = Some(drain::look(client, &host_of(&machine)).await);
        plan = with(&machine, &hosts, &runs, drain.as_ref()).0;
    }
    if plan.steps.iter().any(cannot_be_taken_back) {
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
        plan = with(&machine, &hosts, &runs, drain.as_ref()).0;
    }
    for step in &plan.steps {
        execute(&ctx, &machine, step).await?;
    }
    if let Some(refusals) = evict(&ctx, &plan.steps).await
        && let Some(drain) = &mut drain
    {
        drain.refusals = refusals;
        let told = with(&machine, &hosts, &runs, Some(drain)).0;
        (plan.status, plan.next) = (told.status, told.next);
    }
    if plan.steps.contains(&Step::RemoveFinalizer) {
        tell_quarantine(&ctx, &machine, &plan.steps).await;
        tell(&ctx, &machine, &plan.status.conditions).await;
        return Ok(Pass::of(&plan, false));
    }
    let written = execute::patch_status(&ctx, &*machine, machine.status.as_ref(), &plan.status).await?;
    if written {
        tell(&ctx, &machine, &plan.status.conditions).await;
        tell_repair(&ctx, &machine, &plan.status.conditions).await;
    }
    Ok(Pass::of(&plan, written))
}

fn cannot_be_taken_back(step: &Step) -> bool {
    match step {
        Step::AddFinalizer | Step::SetHost(_) | Step::Cordon { .. } | Step::Evict { .. } => false,
        Step::Claim { .. } | Step::DeleteNode { .. } | Step::Release { .. } | Step::RemoveFinalizer => true,
    }
}

fn host_of(machine: &Machine) -> String {
    let host = machine.spec.host_ref.as_ref();
    host.map(|host| host.name.clone()).unwrap_or_default()
}

/// The machine's own node, in a list of at most one; `None` while nothing is known of the cluster's nodes.
fn nodes(ctx: &Context, namespace: &str, machine: &Machine) -> Option<Vec<NodeSeen>> {
    let node = ctx
        .remote
        .node(namespace, &machine.spec.cluster_name, &host_of(machine))?;
    Some(node.into_iter().collect())
}

/// Carries out the evictions of a plan; none: there are none. What is refused is no error.
async fn evict(ctx: &Context, steps: &[Step]) -> Option<Vec<Refusal>> {
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
        } => {
            let mut patch = json!({ "metadata": { "finalizers": finalizers }, "spec": { "claimRef": null } });
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

/// The Machine goes with its status: what becomes of its Host is told as an Event alone.
async fn tell_quarantine(ctx: &Context, machine: &Machine, steps: &[Step]) {
    for step in steps {
        if let Step::Release {
            host,
            quarantine: Some(quarantine),
            ..
        } = step
        {
            let note = format!("Host {} is quarantined: {}", host.name_any(), quarantine.message);
            let reason = format!("{:?}", quarantine.reason);
            ctx.events.warning(machine, &reason, &note).await;
        }
    }
}

async fn tell(ctx: &Context, machine: &Machine, conditions: &[Condition]) {
    let old = machine
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice())
        .unwrap_or_default();
    let health = match machine.spec.role {
        // It has no Node; how its member of etcd is stands here.
        Role::Etcd => condition::HEALTHY,
        Role::ControlPlane | Role::Worker => condition::NODE_READY,
    };
    let types: &[&str] = match machine.metadata.deletion_timestamp {
        Some(_) => &[condition::DELETING, condition::DRAINED, condition::HOOKS_PLAYED],
        None => &[condition::HOST_CLAIMED, condition::PROVISIONED, health],
    };
    let fine = [
        "Running",
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
        "WaitsForTurn",
        "WaitsForHooks",
        "Draining",
        "Drained",
        "NothingToDrain",
        "LeavesEtcd",
        "WaitsForReset",
        "DeletesNode",
        "ReleasesHost",
        "HostReleased",
    ];
    // What is on its way is no Event: only what came about, and what is wrong.
    let told = [
        "Claimed",
        "Provisioned",
        "NodeReady",
        "Draining",
        "Drained",
        "LeavesEtcd",
        "DeletesNode",
    ];
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
