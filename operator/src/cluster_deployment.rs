//! ClusterDeployment: observes a cluster and all that belongs to it, carries out the plan, and writes the status, its
//! lock included, only if nobody else has written the object since it was read.

mod belongings;
mod steps;
mod telling;

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::names;
use crds::references::LocalRef;
use crds::{
    Cluster, ClusterDeployment, ClusterDeploymentStatus, Host, Machine, MachineSet, PlaybookRun,
    RemediationPolicy,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt};
use plan::cluster::NodeSeen;
use plan::cluster_deployment::{Action, Observed};
use plan::hooks::Library;
use plan::settings::{self, Manifests};
use plan::undecodable::status_on_hold;
use tokio::task::JoinSet;

use crate::context::Context;
use crate::controller::{self, Pass};
use crate::error::{Doing, Error};
use crate::{execute, playbook_run};
use belongings::Belongings;

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let cache = &ctx.cache;
    let (holder, of_policy) = (ctx.clone(), ctx.clone());
    let of_host = move |host: Arc<Host>| {
        let namespace = host.namespace().unwrap_or_default();
        let Some(claim) = host.spec.claim_ref.as_ref() else {
            // One that was given up may be back.
            let cluster = host.spec.quarantine.as_ref()?.cluster_name.as_ref()?;
            return Some(reference(cluster, &namespace));
        };
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
    let manifests = manifests(&ctx, &deployment).await?;
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
            manifests: &manifests,
            pki,
            kubeconfig,
        })
    };
    let mut belongings = belongings::cached(&ctx, &namespace, &name);
    belongings::find_holders(&ctx, &deployment, &mut belongings).await?;
    let mut plan = decide(&belongings);
    if let Some(message) = ctx.cache.hold_of_deployment(&deployment) {
        return hold(&ctx, &deployment, message).await;
    }
    let known = |status: Option<&ClusterDeploymentStatus>| status.is_some_and(|s| s.last_token.is_some());
    let opens = known(Some(&plan.status)) && !known(deployment.status.as_ref());
    if opens || plan.steps.iter().any(Action::is_irrevocable) {
        belongings = belongings::live(&ctx, &namespace, &name).await?;
        plan = decide(&belongings);
    }
    for step in &plan.steps {
        steps::execute(&ctx, &deployment, step).await?;
    }
    if plan.steps.contains(&Action::RemoveFinalizer) {
        return Ok(Pass::of(&plan, false));
    }
    let written = deployment.status.as_ref() != Some(&plan.status);
    if written {
        let mut wanted = deployment.clone();
        wanted.status = Some(plan.status.clone());
        execute::replace_status(&ctx, &wanted).await?;
        telling::of_conditions(&ctx, &deployment, &plan.status.conditions).await;
        telling::of_replacements(&ctx, &deployment, &plan.status).await;
    }
    Ok(Pass::of(&plan, written))
}

/// Says on the ClusterDeployment what it waits for, and does nothing.
async fn hold(ctx: &Context, deployment: &ClusterDeployment, message: String) -> Result<Pass, Error> {
    let status = status_on_hold(deployment, &message, now());
    if deployment.status.as_ref() != Some(&status) {
        let mut wanted = deployment.clone();
        wanted.status = Some(status.clone());
        execute::replace_status(ctx, &wanted).await?;
        telling::of_conditions(ctx, deployment, &status.conditions).await;
    }
    Ok(Pass::held(message))
}

/// The Nodes of the machines that the status remembers as forgotten; `None` while nothing is known of the cluster's
/// Nodes.
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

/// What the ConfigMaps with manifests hold; what cannot be read is not known.
async fn manifests(ctx: &Context, deployment: &ClusterDeployment) -> Result<Manifests, Error> {
    let namespace = deployment.namespace().unwrap_or_default();
    let digest = async |reference: Option<&LocalRef>| -> Result<Option<String>, Error> {
        let Some(reference) = reference else {
            return Ok(Some(settings::digest(&BTreeMap::<String, String>::new())));
        };
        let found = playbook_run::inputs::manifests(ctx, &namespace, &reference.name).await?;
        Ok(found.ok().map(|data| settings::digest(&data)))
    };
    let spec = &deployment.spec;
    let addons = spec.addon_manifests();
    Ok(Manifests {
        addons: digest(addons).await?,
        network: digest(spec.networking.plugin.manifests_ref.as_ref()).await?,
    })
}

/// The objects behind the shared pointers of a cache.
pub(crate) fn refs<K>(objects: &[Arc<K>]) -> Vec<&K> {
    objects.iter().map(Arc::as_ref).collect()
}

async fn there(ctx: &Context, namespace: &str, secret: &str) -> Result<bool, Error> {
    let api: Api<Secret> = Api::namespaced(ctx.client.clone(), namespace);
    let found = api
        .get_metadata_opt(secret)
        .await
        .doing(|| format!("look for Secret {secret}"))?;
    Ok(found.is_some_and(|secret| secret.metadata.deletion_timestamp.is_none()))
}

#[cfg(test)]
mod tests;
