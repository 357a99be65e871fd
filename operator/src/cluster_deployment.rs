//! ClusterDeployment: observes a cluster and all that belongs to it, carries out the plan, and writes the status, its
//! lock included, only if nobody else has written the object since it was read.

use std::sync::Arc;

use crds::cluster_deployment::Repair;
use crds::names::{self, FIELD_MANAGER, condition, finalizer};
use crds::remediation_policy::RemediationAction;
use crds::{
    Cluster, ClusterDeployment, ClusterDeploymentStatus, Host, Machine, MachineSet, PlaybookRun,
    RemediationPolicy,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt};
use plan::cluster::NodeSeen;
use plan::cluster_deployment::{Observed, Step};
use plan::hooks::Library;
use plan::news::news;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::context::Context;
use crate::controller::{self, Pass};
use crate::error::{Doing, Error};
use crate::execute::{self, Creation};
use crate::{kubeconfig, pki, playbook_run};

/// Reasons that are on the way; all others need a look.
const ON_THE_WAY: [&str; 23] = [
    "AsksMachines",
    "TellsLoadBalancers",
    "WaitsForReadinessGate",
    "TokensLost",
    "NodeNotSeenYet",
    "Running",
    "WaitsForHosts",
    "Installing",
    "NotInstalled",
    "Joining",
    "WaitsToJoin",
    "RemovesMember",
    "TellsApiServers",
    "RecoversEtcd",
    "ScalingUp",
    "ScalingDown",
    "MachinesNotReady",
    "Deleting",
    "CancelsRuns",
    "DeletesMachines",
    "CleansMachines",
    "WaitsForMachines",
    "MachinesReleased",
];

const NOTHING_TO_REPAIR: &str = "NothingToRepair";
/// The same of the condition `Remediation`.
const REPAIR_ON_THE_WAY: [&str; 5] = [
    NOTHING_TO_REPAIR,
    "Repairing",
    "Waiting",
    "WaitsForNode",
    "CoolingDown",
];

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let cache = &ctx.cache;
    let (holder, of_policy) = (ctx.clone(), ctx.clone());
    let of_host = move |host: Arc<Host>| {
        let namespace = host.namespace().unwrap_or_default();
        let claim = host.spec.claim_ref.as_ref()?;
        let machine = holder.cache.machines.get(&namespace, &claim.name)?;
        Some(reference(&machine.spec.cluster_name, &namespace))
    };
    let controller = controller::of(ctx, &cache.cluster_deployments)
        .watches_shared_stream(cache.machine_sets.changes(), |set: Arc<MachineSet>| {
            Some(reference(
                &set.spec.cluster_name,
                &set.namespace().unwrap_or_default(),
            ))
        })
        .watches_shared_stream(cache.machines.changes(), |machine: Arc<Machine>| {
            Some(reference(
                &machine.spec.cluster_name,
                &machine.namespace().unwrap_or_default(),
            ))
        })
        .watches_shared_stream(cache.hosts.changes(), of_host)
        .watches_shared_stream(cache.runs.changes(), |run: Arc<PlaybookRun>| {
            let cluster = run.spec.cluster_name.as_ref()?;
            Some(reference(cluster, &run.namespace().unwrap_or_default()))
        })
        .watches_shared_stream(cache.policies.changes(), move |policy: Arc<RemediationPolicy>| {
            let namespace = policy.namespace().unwrap_or_default();
            let deployments = of_policy.cache.cluster_deployments.list(&namespace, |_| true);
            deployments
                .iter()
                .map(|deployment| reference(&deployment.name_any(), &namespace))
                .collect::<Vec<_>>()
        })
        .watches_shared_stream(cache.clusters.changes(), |cluster: Arc<Cluster>| {
            Some(reference(
                &cluster.name_any(),
                &cluster.namespace().unwrap_or_default(),
            ))
        });
    tasks.spawn(controller::run(ctx.clone(), controller, pass));
}

fn reference(cluster: &str, namespace: &str) -> ObjectRef<ClusterDeployment> {
    ObjectRef::new(cluster).within(namespace)
}

/// What belongs to the cluster, from a cache or from the API.
struct Belongings {
    sets: Vec<Arc<MachineSet>>,
    machines: Vec<Arc<Machine>>,
    hosts: Vec<Arc<Host>>,
    runs: Vec<Arc<PlaybookRun>>,
}

pub(crate) async fn pass(ctx: Arc<Context>, cached: Arc<ClusterDeployment>) -> Result<Pass, Error> {
    let (namespace, name) = (cached.namespace().unwrap_or_default(), cached.name_any());
    let api: Api<ClusterDeployment> = Api::namespaced(ctx.client.clone(), &namespace);
    let found = api.get_opt(&name).await;
    let Some(deployment) = found.doing(|| format!("read ClusterDeployment {name}"))? else {
        return Ok(Pass::settled());
    };
    let cluster = ctx.cache.clusters.get(&namespace, &name);
    let pki = there(&ctx, &namespace, &names::pki_secret(&name)).await?;
    let kubeconfig = there(&ctx, &namespace, &names::kubeconfig_secret(&name)).await?;
    let deployments = ctx.cache.cluster_deployments.everywhere();
    let policies = ctx.cache.policies.list(&namespace, |_| true);
    let library = library(&ctx, &deployment).await?;
    let forgotten_nodes = forgotten_nodes(&ctx, &deployment);
    let decide = |belongings: &Belongings| {
        plan::cluster_deployment::plan(&Observed {
            now: now(),
            deployment: &deployment,
            sets: &refs(&belongings.sets),
            machines: &refs(&belongings.machines),
            hosts: &refs(&belongings.hosts),
            runs: &refs(&belongings.runs),
            deployments: &refs(&deployments),
            policies: &refs(&policies),
            library: library.as_ref(),
            cluster: cluster.as_deref(),
            forgotten_nodes: forgotten_nodes.as_deref(),
            pki,
            kubeconfig,
        })
    };
    let mut belongings = cached_belongings(&ctx, &namespace, &name);
    find_holders(&ctx, &deployment, &mut belongings).await?;
    let mut plan = decide(&belongings);
    let known = |status: Option<&ClusterDeploymentStatus>| status.is_some_and(|s| s.last_token.is_some());
    let opens = known(Some(&plan.status)) && !known(deployment.status.as_ref());
    if opens || plan.steps.iter().any(cannot_be_taken_back) {
        belongings = live_belongings(&ctx, &namespace, &name).await?;
        plan = decide(&belongings);
    }
    for step in &plan.steps {
        execute(&ctx, &deployment, step).await?;
    }
    if plan.steps.contains(&Step::RemoveFinalizer) {
        return Ok(Pass::of(&plan, false));
    }
    let written = deployment.status.as_ref() != Some(&plan.status);
    if written {
        let mut wanted = deployment.clone();
        wanted.status = Some(plan.status.clone());
        execute::replace_status(&ctx, &wanted).await?;
        tell(&ctx, &deployment, &plan.status.conditions).await;
        tell_replacements(&ctx, &deployment, &plan.status).await;
    }
    Ok(Pass::of(&plan, written))
}

/// The Nodes of the machines that the status remembers as forgotten; `None` while nothing is known of the cluster's Nodes.
fn forgotten_nodes(ctx: &Context, deployment: &ClusterDeployment) -> Option<Vec<NodeSeen>> {
    let (namespace, cluster) = (deployment.namespace().unwrap_or_default(), deployment.name_any());
    let forgotten = &deployment.status.as_ref()?.forgotten;
    // Of whom nothing is remembered nothing is known.
    forgotten.first()?;
    let nodes: Option<Vec<Option<NodeSeen>>> = forgotten
        .iter()
        .map(|machine| ctx.remote.node(&namespace, &cluster, &machine.host))
        .collect();
    nodes.map(|nodes| nodes.into_iter().flatten().collect())
}

/// Whole seconds: what is written into a status has no finer ones.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// The ConfigMap of custom playbooks, where hooks name it.
async fn library(ctx: &Context, deployment: &ClusterDeployment) -> Result<Option<Library>, Error> {
    let executor = deployment.spec.executor.as_ref();
    let reference = executor.and_then(|executor| executor.custom_playbooks_ref.as_ref());
    let namespace = deployment.namespace().unwrap_or_default();
    let wanted = reference.filter(|_| deployment.spec.hooks.is_some());
    playbook_run::inputs::library(ctx, &namespace, wanted).await
}

/// The objects behind the shared pointers of a cache.
pub(crate) fn refs<K>(objects: &[Arc<K>]) -> Vec<&K> {
    objects.iter().map(Arc::as_ref).collect()
}

fn cannot_be_taken_back(step: &Step) -> bool {
    matches!(
        step,
        Step::CreateRun(_)
            | Step::DeleteRun(_)
            | Step::DeleteMachineSet(_)
            | Step::DeleteMachine(_)
            | Step::DeleteCluster(_)
            | Step::ForceRemoveMachine(_)
            | Step::ForgetMachine { .. }
            | Step::RemoveFinalizer
    )
}

fn cached_belongings(ctx: &Context, namespace: &str, name: &str) -> Belongings {
    let cache = &ctx.cache;
    Belongings {
        sets: cache.machine_sets.list(namespace, |_| true),
        machines: cache
            .machines
            .list(namespace, |machine| machine.spec.cluster_name == name),
        hosts: cache.hosts.list(namespace, |_| true),
        runs: cache
            .runs
            .list(namespace, |run| run.spec.cluster_name.as_deref() == Some(name)),
    }
}

/// Runs that hold the lock and that the cache does not show are read: only what is gone lets go of it unheard.
async fn find_holders(
    ctx: &Context,
    deployment: &ClusterDeployment,
    belongings: &mut Belongings,
) -> Result<(), Error> {
    let api: Api<PlaybookRun> =
        Api::namespaced(ctx.client.clone(), &deployment.namespace().unwrap_or_default());
    let cluster = deployment.name_any();
    for held in deployment.status.iter().flat_map(|status| &status.operations) {
        if belongings.runs.iter().any(|run| run.name_any() == held.run) {
            continue;
        }
        let found = api.get_opt(&held.run).await;
        let found = found.doing(|| format!("read PlaybookRun {}", held.run))?;
        let found = found.filter(|run| run.spec.cluster_name.as_ref() == Some(&cluster));
        belongings.runs.extend(found.map(Arc::new));
    }
    Ok(())
}

async fn live_belongings(ctx: &Context, namespace: &str, name: &str) -> Result<Belongings, Error> {
    let all = ListParams::default();
    let sets: Api<MachineSet> = Api::namespaced(ctx.client.clone(), namespace);
    let sets = sets.list(&all).await.doing(|| "list the MachineSets".into())?;
    let machines: Api<Machine> = Api::namespaced(ctx.client.clone(), namespace);
    let of_cluster = ListParams::default().fields(&format!("spec.clusterName={name}"));
    let machines = machines
        .list(&of_cluster)
        .await
        .doing(|| format!("list the Machines of cluster {name}"))?;
    let hosts: Api<Host> = Api::namespaced(ctx.client.clone(), namespace);
    let hosts = hosts.list(&all).await.doing(|| "list the Hosts".into())?;
    let runs: Api<PlaybookRun> = Api::namespaced(ctx.client.clone(), namespace);
    let runs = runs
        .list(&all)
        .await
        .doing(|| format!("list the PlaybookRuns of cluster {name}"))?;
    let runs = runs
        .into_iter()
        .filter(|run| run.spec.cluster_name.as_deref() == Some(name));
    Ok(Belongings {
        sets: sets.into_iter().map(Arc::new).collect(),
        machines: machines.into_iter().map(Arc::new).collect(),
        hosts: hosts.into_iter().map(Arc::new).collect(),
        runs: runs.map(Arc::new).collect(),
    })
}

async fn there(ctx: &Context, namespace: &str, secret: &str) -> Result<bool, Error> {
    let api: Api<Secret> = Api::namespaced(ctx.client.clone(), namespace);
    let found = api
        .get_metadata_opt(secret)
        .await
        .doing(|| format!("look for Secret {secret}"))?;
    Ok(found.is_some_and(|secret| secret.metadata.deletion_timestamp.is_none()))
}

async fn execute(ctx: &Context, deployment: &ClusterDeployment, step: &Step) -> Result<(), Error> {
    match step {
        Step::AddFinalizer => execute::add_finalizer(ctx, deployment, finalizer::CLUSTER_DEPLOYMENT).await,
        Step::RemoveFinalizer => {
            execute::remove_finalizer(ctx, deployment, finalizer::CLUSTER_DEPLOYMENT).await
        }
        Step::MakePki => pki::ensure(ctx, deployment, Timestamp::now()).await.map(drop),
        Step::MakeKubeconfig { endpoint } => {
            let pki = pki::ensure(ctx, deployment, Timestamp::now()).await?;
            kubeconfig::ensure(ctx, deployment, &pki, endpoint, Timestamp::now())
                .await
                .map(drop)
        }
        Step::ApplyCluster(cluster) => execute::apply(ctx, &**cluster).await.map(drop),
        Step::DeleteCluster(cluster) => execute::delete(ctx, &**cluster, None).await,
        Step::ApplyMachineSet { name, object } => apply_set(ctx, deployment, name, object).await,
        Step::DeleteMachineSet(set) => execute::delete(ctx, &**set, None).await,
        Step::DeleteMachine(machine) => execute::delete(ctx, &**machine, None).await,
        Step::ForceRemoveMachine(machine) => force_remove(ctx, machine, None).await,
        Step::ForgetMachine { machine, since } => force_remove(ctx, machine, Some(*since)).await,
        Step::CreateRun(run) => match execute::create_once(ctx, &**run).await? {
            Creation::Made | Creation::Ours => Ok(()),
            Creation::Foreign => Err(Error::Failed {
                action: format!("create PlaybookRun {}", run.name_any()),
                source: "one of that name is there and belongs to another: delete it".into(),
            }),
        },
        Step::CancelRun(run) => ask(ctx, run, "cancel", json!({ "cancel": true })).await,
        Step::HoldRun { run, paused: true } => ask(ctx, run, "pause", json!({ "paused": true })).await,
        Step::HoldRun { run, paused: false } => ask(ctx, run, "let go on", json!({ "paused": false })).await,
        Step::DeleteRun(run) => execute::delete(ctx, &**run, None).await,
    }
}

async fn apply_set(
    ctx: &Context,
    deployment: &ClusterDeployment,
    name: &str,
    object: &Value,
) -> Result<(), Error> {
    let api: Api<MachineSet> =
        Api::namespaced(ctx.client.clone(), &deployment.namespace().unwrap_or_default());
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    applied.map(drop).doing(|| format!("apply MachineSet {name}"))
}

/// A person said of the whole cluster what is said of one of its machines here; or it is lost, since then.
async fn force_remove(ctx: &Context, machine: &Machine, lost: Option<Timestamp>) -> Result<(), Error> {
    let generation = machine.metadata.generation.unwrap_or_default().to_string();
    let mut annotations = json!({ names::annotation::FORCE_REMOVE: generation });
    if let Some(since) = lost {
        annotations[names::annotation::LOST_SINCE] = json!(since.to_string());
    }
    let patch = json!({ "metadata": { "annotations": annotations } });
    execute::patch_if_unchanged(ctx, machine, patch).await.map(drop)
}

/// Asks something of this very run; one that is gone does it already.
async fn ask(ctx: &Context, run: &PlaybookRun, verb: &str, spec: Value) -> Result<(), Error> {
    let patch = json!({ "metadata": { "uid": run.uid() }, "spec": spec });
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.into()),
        ..PatchParams::default()
    };
    let patched = execute::api_of(ctx, run)
        .patch(&run.name_any(), &params, &Patch::Merge(patch))
        .await;
    match patched
        .map(drop)
        .doing(|| format!("{verb} PlaybookRun {}", run.name_any()))
    {
        Err(error) if error.is_not_found() => Ok(()),
        result => result,
    }
}

async fn tell(ctx: &Context, deployment: &ClusterDeployment, conditions: &[Condition]) {
    let old = deployment
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice())
        .unwrap_or_default();
    let types: &[&str] = match deployment.metadata.deletion_timestamp {
        Some(_) => &[condition::DELETING],
        None => &[
            condition::READY,
            condition::SCALE_PUT_BACK,
            condition::REMEDIATION,
            condition::MACHINES_FORGOTTEN,
            condition::REMOVALS_HELD,
        ],
    };
    let first_look = crds::conditions::find(old, condition::REMEDIATION).is_none();
    for news in news(old, conditions, types, |condition| {
        let reason = condition.reason.as_str();
        !ON_THE_WAY.contains(&reason) && !REPAIR_ON_THE_WAY.contains(&reason)
    }) {
        if first_look && news.reason == NOTHING_TO_REPAIR {
            continue;
        }
        match news.warning {
            true => ctx.events.warning(deployment, &news.reason, &news.note).await,
            false => ctx.events.normal(deployment, &news.reason, &news.note).await,
        }
    }
}

/// A Machine that is replaced goes with its status: that it is, is told of the cluster.
async fn tell_replacements(ctx: &Context, deployment: &ClusterDeployment, status: &ClusterDeploymentStatus) {
    let replaces = |repair: &&Repair| repair.action == Some(RemediationAction::Replace);
    let before = deployment.status.iter().flat_map(|status| &status.repairs);
    let before: Vec<&str> = before
        .filter(replaces)
        .map(|repair| repair.machine.as_str())
        .collect();
    for repair in status.repairs.iter().filter(replaces) {
        if !before.contains(&repair.machine.as_str()) {
            let note = format!("{}: {}", repair.machine, repair.message);
            ctx.events.normal(deployment, &repair.reason, &note).await;
        }
    }
}

#[cfg(test)]
mod tests;
