//! What a KarmadaDeployment has to do with others of the metadata cluster, as the caches show them.

use std::sync::Arc;

use crds::references::LocalRef;
use crds::{Cluster, ClusterDeployment, EtcdBackup, EtcdBackupSchedule, KarmadaDeployment, ObjectExt};
use kube::runtime::reflector::ObjectRef;
use plan::karmada_deployment::is_cluster_of;

use crate::context::Context;
use crate::controller;
use crate::error::Error;
use crate::live;

/// Those that run on this Cluster, have its name, or may have it as a member.
pub(super) fn concerned(ctx: &Context, namespace: &str, cluster: &str) -> Vec<ObjectRef<KarmadaDeployment>> {
    let is_concerned = |object: &KarmadaDeployment| {
        let is_it = |reference: &LocalRef| reference.name == cluster;
        let spec = &object.spec;
        let known = object.status.as_ref().map(|status| status.members.as_slice()).unwrap_or_default();
        object.name() == cluster
            || spec.auto_join.is_some()
            || spec.host_cluster_ref.as_ref().is_some_and(is_it)
            || spec.members.iter().any(|member| member.cluster_ref.as_ref().is_some_and(is_it))
            || known.iter().any(|member| member.cluster_ref.as_ref().is_some_and(is_it))
    };
    controller::references(&ctx.cache.karmada_deployments.list(namespace, is_concerned))
}

/// Those with a member whose kubeconfig is read on this Host.
pub(super) fn reading_on(ctx: &Context, namespace: &str, host: &str) -> Vec<ObjectRef<KarmadaDeployment>> {
    let reads = |object: &KarmadaDeployment| {
        let is_it = |reference: &Option<LocalRef>| reference.as_ref().is_some_and(|reference| reference.name == host);
        object.spec.members.iter().any(|member| is_it(&member.host_ref))
    };
    controller::references(&ctx.cache.karmada_deployments.list(namespace, reads))
}

/// Whether a cluster that has begun to join, and not joined, is being deleted, and the caches do not show it yet.
pub(super) async fn joins_while_it_goes(ctx: &Context, object: &KarmadaDeployment) -> Result<bool, Error> {
    let members = object.status.as_ref().map(|status| status.members.as_slice()).unwrap_or_default();
    let begun = members
        .iter()
        .filter(|member| member.cluster_uid.is_some() && member.joined_at.is_none() && member.leaving_since.is_none());
    let namespace = object.namespace();
    for cluster in begun.filter_map(|member| member.cluster_ref.as_ref()) {
        let seen = ctx.cache.cluster_deployments.get(namespace, &cluster.name);
        if seen.is_none_or(|seen| seen.is_deleting()) {
            continue;
        }
        let found = live::get::<ClusterDeployment>(ctx, namespace, &cluster.name).await?;
        if found.is_none_or(|found| found.is_deleting()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Those that clusters join by their labels, once their Addons are Ready.
pub(super) fn joined_by_labels(ctx: &Context, namespace: &str) -> Vec<ObjectRef<KarmadaDeployment>> {
    let joins = |object: &KarmadaDeployment| object.spec.auto_join.is_some();
    controller::references(&ctx.cache.karmada_deployments.list(namespace, joins))
}

/// Those that may wait for what one has that is gone: a namespace, an etcd.
pub(super) fn rivals(ctx: &Context, gone: &KarmadaDeployment) -> Vec<ObjectRef<KarmadaDeployment>> {
    let cache = &ctx.cache.karmada_deployments;
    match cache.get(gone.namespace(), gone.name()) {
        Some(_) => Vec::new(),
        None => controller::references(&cache.everywhere()),
    }
}

/// The Cluster that it runs on, if it is there.
pub(super) fn host_cluster(ctx: &Context, object: &KarmadaDeployment) -> Option<Arc<Cluster>> {
    let host = object.spec.host_cluster_ref.as_ref()?;
    ctx.cache.clusters.get(object.namespace(), &host.name)
}

/// All others, of every namespace.
pub(super) fn others(ctx: &Context, object: &KarmadaDeployment) -> Vec<Arc<KarmadaDeployment>> {
    let mut others = ctx.cache.karmada_deployments.everywhere();
    others.retain(|other| other.uid() != object.uid());
    others
}

/// The EtcdBackups of planes of its name.
pub(super) fn backups(ctx: &Context, object: &KarmadaDeployment) -> Vec<Arc<EtcdBackup>> {
    let is_of = |backup: &EtcdBackup| {
        backup.spec.karmada_deployment_ref.as_ref().is_some_and(|reference| reference.name == object.name())
    };
    ctx.cache.etcd_backups.list(object.namespace(), is_of)
}

/// The EtcdBackupSchedules that are for it.
pub(super) fn schedules(ctx: &Context, object: &KarmadaDeployment) -> Vec<Arc<EtcdBackupSchedule>> {
    ctx.cache.etcd_backup_schedules.list(object.namespace(), |schedule| schedule.spec.is_for_plane(object.name()))
}

/// The Cluster that stands for the plane, if it is there.
pub(super) fn own_cluster(ctx: &Context, object: &KarmadaDeployment) -> Option<Arc<Cluster>> {
    let found = ctx.cache.clusters.get(object.namespace(), object.name());
    found.filter(|cluster| is_cluster_of(object, cluster))
}

/// What has the name, and whose Secrets would have the names of the plane's.
pub(super) fn namesake(ctx: &Context, object: &KarmadaDeployment) -> Option<String> {
    let (namespace, name) = (object.namespace(), object.name());
    let deployment = ctx.cache.cluster_deployments.get(namespace, name);
    let cluster = ctx.cache.clusters.get(namespace, name).filter(|cluster| !is_cluster_of(object, cluster));
    deployment
        .map(|deployment| format!("ClusterDeployment {}", deployment.name()))
        .or_else(|| cluster.map(|cluster| format!("Cluster {}", cluster.name())))
}
