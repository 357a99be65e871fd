//! Upon which changes of other objects a KarmadaDeployment is looked at.

use std::sync::Arc;

use crds::{
    Addon, Cluster, ClusterAddon, ClusterDeployment, EtcdRestore, Host, KarmadaDeployment, Machine, MachineSet,
    ObjectExt, PlaybookRun,
};
use futures::{StreamExt, stream};
use kube::Resource;
use kube::runtime::Controller;

use super::members::news::ReadinessNews;
use super::neighbours::{concerned, joined_by_labels, reading_on, rivals};
use crate::cluster_addon::news::News;
use crate::context::Context;
use crate::controller::beside;

/// The controller that also looks when what a plane runs on, what it has made, or what its members depend on changes.
/// Secrets are not watched: what is new in them is seen at the next look.
pub(super) fn on_changes(
    ctx: &Arc<Context>,
    controller: Controller<KarmadaDeployment>,
) -> Controller<KarmadaDeployment> {
    let (of_cluster, of_change, of_other, news) = (ctx.clone(), ctx.clone(), ctx.clone(), News::default());
    // A Node is none of its business.
    let contact = ctx.remote.changes().filter(|change| std::future::ready(change.node.is_none()));
    let contact = contact
        .flat_map(move |change| stream::iter(concerned(&of_change, &change.cluster.namespace, &change.cluster.name)));
    on_hosts(ctx, on_machines(ctx, on_neighbours(ctx, controller)))
        .watches_shared_stream(ctx.cache.clusters.changes(), move |cluster: Arc<Cluster>| {
            let (namespace, name) = (cluster.namespace().to_owned(), cluster.name().to_owned());
            let is_there = of_cluster.cache.clusters.get(&namespace, &name).is_some();
            match news.is_news(&cluster, is_there) {
                true => concerned(&of_cluster, &namespace, &name),
                false => Vec::new(),
            }
        })
        .watches_shared_stream(ctx.cache.karmada_deployments.changes(), move |gone: Arc<KarmadaDeployment>| {
            rivals(&of_other, &gone)
        })
        .watches_shared_stream(ctx.cache.etcd_restores.changes(), |restore: Arc<EtcdRestore>| {
            Some(beside(&*restore, &restore.spec.karmada_deployment_ref.as_ref()?.name))
        })
        .reconcile_on(contact)
        .reconcile_on(ctx.following.changes())
}

/// The Hosts on which kubeconfigs of members are read, and the runs that read them.
fn on_hosts(ctx: &Arc<Context>, controller: Controller<KarmadaDeployment>) -> Controller<KarmadaDeployment> {
    let readers = ctx.clone();
    controller
        .watches_shared_stream(ctx.cache.hosts.changes(), move |host: Arc<Host>| {
            reading_on(&readers, host.namespace(), host.name())
        })
        .watches_shared_stream(ctx.cache.runs.changes(), |run: Arc<PlaybookRun>| {
            let owner = run.metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
            Some(beside(&*run, owner.filter(|owner| owner.kind == KarmadaDeployment::kind(&()))?.name.as_str()))
        })
}

/// What is of its machines, where it is on machines.
fn on_machines(ctx: &Arc<Context>, controller: Controller<KarmadaDeployment>) -> Controller<KarmadaDeployment> {
    let (cache, holder) = (&ctx.cache, ctx.clone());
    let of_host = move |host: Arc<Host>| {
        let Some(claim) = host.spec.claim_ref.as_ref() else {
            // One that was given up may be back.
            return Some(beside(&*host, host.spec.quarantine.as_ref()?.former()?.karmada_deployment()?));
        };
        let machine = holder.cache.machines.get(host.namespace(), &claim.name)?;
        Some(beside(&*host, machine.spec.former().karmada_deployment()?))
    };
    controller
        .watches_shared_stream(cache.machine_sets.changes(), |set: Arc<MachineSet>| {
            Some(beside(&*set, set.spec.former().karmada_deployment()?))
        })
        .watches_shared_stream(cache.machines.changes(), |machine: Arc<Machine>| {
            Some(beside(&*machine, machine.spec.former().karmada_deployment()?))
        })
        .watches_shared_stream(cache.hosts.changes(), of_host)
        .watches_shared_stream(cache.runs.changes(), |run: Arc<PlaybookRun>| {
            Some(beside(&*run, run.spec.former()?.karmada_deployment()?))
        })
}

/// What says whether a cluster joins or leaves by itself.
fn on_neighbours(ctx: &Arc<Context>, controller: Controller<KarmadaDeployment>) -> Controller<KarmadaDeployment> {
    let (of_deployment, of_addon, of_applied) = (ctx.clone(), ctx.clone(), ctx.clone());
    let (deployment_news, addon_news, applied_news) =
        (ReadinessNews::default(), ReadinessNews::default(), ReadinessNews::default());
    controller
        .watches_shared_stream(ctx.cache.cluster_deployments.changes(), move |deployment: Arc<ClusterDeployment>| {
            let (namespace, name) = (deployment.namespace(), deployment.name());
            let is_there = of_deployment.cache.cluster_deployments.get(namespace, name).is_some();
            match deployment_news.is_news(&*deployment, is_there) {
                true => concerned(&of_deployment, namespace, name),
                false => Vec::new(),
            }
        })
        .watches_shared_stream(ctx.cache.addons.changes(), move |addon: Arc<Addon>| {
            let namespace = addon.namespace();
            let is_there = of_addon.cache.addons.get(namespace, addon.name()).is_some();
            match addon_news.is_news(&*addon, is_there) {
                true => joined_by_labels(&of_addon, namespace),
                false => Vec::new(),
            }
        })
        .watches_shared_stream(ctx.cache.cluster_addons.changes(), move |applied: Arc<ClusterAddon>| {
            let namespace = applied.namespace();
            let is_there = of_applied.cache.cluster_addons.get(namespace, applied.name()).is_some();
            match applied_news.is_news(&*applied, is_there) {
                true => joined_by_labels(&of_applied, namespace),
                false => Vec::new(),
            }
        })
}
