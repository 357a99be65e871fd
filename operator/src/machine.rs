//! Machine: observes one machine, its Host, its runs and its node; claims and gives back Hosts as planned.

mod steps;
mod telling;

use std::sync::Arc;

use crds::{ClusterDeployment, Host, Machine, MachineStatus, PlaybookRun};
use futures::{StreamExt, stream};
use kube::api::ListParams;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt};
use plan::claims;
use plan::cluster::NodeSeen;
use plan::cluster_deployment::former::is_former;
use plan::machine::leaving::drain::Drain;
use plan::machine::leaving::looks_at_pods;
use plan::machine::{Observed, Step};
use tokio::task::JoinSet;

use crate::cluster_deployment::{now, refs};
use crate::context::Context;
use crate::controller::{self, Pass};
use crate::error::{Doing, Error};
use crate::remote::drain;
use crate::{execute, live};

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
    let sets = ctx.cache.machine_sets.list(&namespace, |_| true);
    let deployment = ctx.cache.cluster_deployments.get(&namespace, &cluster);
    let deployment = deployment.filter(|deployment| !is_former(&cached, deployment, &refs(&sets)));
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
    if let Some(message) = ctx.cache.hold_of_cluster(&namespace, &cluster) {
        return hold(&ctx, &machine, message).await;
    }
    if plan.steps.iter().any(Step::cannot_be_taken_back) {
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
        let action = "list the Hosts";
        let listed: Vec<Host> = live::list_for_cluster(&ctx, &namespace, &cluster, &all, action).await?;
        hosts = listed.into_iter().map(Arc::new).collect();
        if machine.metadata.deletion_timestamp.is_some() {
            let action = format!("list the PlaybookRuns of cluster {cluster}");
            let listed: Vec<PlaybookRun> =
                live::list_for_cluster(&ctx, &namespace, &cluster, &all, &action).await?;
            runs = listed
                .into_iter()
                .filter(|run| of_cluster(run))
                .map(Arc::new)
                .collect();
        }
        plan = with(&machine, &hosts, &runs, drain.as_ref()).0;
    }
    if let Some(message) = plan.steps.iter().find_map(|step| hold_of_claim(&ctx, step)) {
        return hold(&ctx, &machine, message).await;
    }
    for step in &plan.steps {
        steps::execute(&ctx, &machine, step).await?;
    }
    if let Some(refusals) = steps::evict(&ctx, &plan.steps).await
        && let Some(drain) = &mut drain
    {
        drain.refusals = refusals;
        let told = with(&machine, &hosts, &runs, Some(drain)).0;
        (plan.status, plan.next) = (told.status, told.next);
    }
    if plan.steps.contains(&Step::RemoveFinalizer) {
        telling::of_quarantine(&ctx, &machine, &plan.steps).await;
        telling::of_conditions(&ctx, &machine, &plan.status.conditions).await;
        return Ok(Pass::of(&plan, false));
    }
    let written = execute::patch_status(&ctx, &*machine, machine.status.as_ref(), &plan.status).await?;
    if written {
        telling::of_conditions(&ctx, &machine, &plan.status.conditions).await;
        telling::of_repair(&ctx, &machine, &plan.status.conditions).await;
    }
    Ok(Pass::of(&plan, written))
}

/// Says on the Machine what it waits for, and does nothing.
async fn hold(ctx: &Context, machine: &Machine, message: String) -> Result<Pass, Error> {
    let status = MachineStatus {
        message: Some(message.clone()),
        ..machine.status.clone().unwrap_or_default()
    };
    execute::patch_status(ctx, machine, machine.status.as_ref(), &status).await?;
    Ok(Pass::held(message))
}

fn hold_of_claim(ctx: &Context, step: &Step) -> Option<String> {
    let Step::Claim { host, .. } = step else {
        return None;
    };
    ctx.cache.hold_of_claim(host)
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
