//! What a KarmadaDeployment has to do with others of the metadata cluster, as the caches show them.

use std::sync::Arc;

use crds::{Cluster, KarmadaDeployment, ObjectExt};
use kube::runtime::reflector::ObjectRef;

use crate::context::Context;
use crate::controller;

/// Those that run on this Cluster, or have its name.
pub(super) fn hosted(ctx: &Context, namespace: &str, cluster: &str) -> Vec<ObjectRef<KarmadaDeployment>> {
    let is_hosted = |object: &KarmadaDeployment| {
        let host = object.spec.host_cluster_ref.as_ref();
        object.name() == cluster || host.is_some_and(|host| host.name == cluster)
    };
    controller::references(&ctx.cache.karmada_deployments.list(namespace, is_hosted))
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

/// What has the name, and whose Secrets would have the names of the plane's.
pub(super) fn namesake(ctx: &Context, object: &KarmadaDeployment) -> Option<String> {
    let (namespace, name) = (object.namespace(), object.name());
    let deployment = ctx.cache.cluster_deployments.get(namespace, name);
    let cluster = ctx.cache.clusters.get(namespace, name);
    deployment
        .map(|deployment| format!("ClusterDeployment {}", deployment.name()))
        .or_else(|| cluster.map(|cluster| format!("Cluster {}", cluster.name())))
}
