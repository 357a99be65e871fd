//! What the controller of ClusterAddons reads in the metadata cluster for a chart, and the Jobs that it makes.

use crds::names::{KUBECONFIG_KEY, label};
use crds::{Addon, Cluster, ClusterAddon, ObjectExt};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use plan::cluster_addon::chart::{ChartSeen, Operation};

use crate::context::Context;
use crate::error::Error;
use crate::kubeconfig::check::check;
use crate::{execute, executor_job, live};

/// What Jobs are made from, and those that are under way. It is read before the cluster is looked at: what a Job has
/// done is seen there then.
pub(super) async fn seen(
    ctx: &Context,
    object: &ClusterAddon,
    addon: Option<&Addon>,
    cluster: &Cluster,
) -> Result<ChartSeen, Error> {
    let namespace = object.namespace();
    let mut seen = ChartSeen { image: ctx.settings.executor_image.clone(), ..ChartSeen::default() };
    let known = object.status.as_ref().and_then(|status| status.release.as_ref());
    if known.is_some_and(|release| release.job.is_some()) {
        seen.jobs = live::labelled(ctx, namespace, label::CLUSTER_ADDON, object.name()).await?;
        seen.pods = live::labelled(ctx, namespace, label::CLUSTER_ADDON, object.name()).await?;
    }
    let secret = live::get::<Secret>(ctx, namespace, &cluster.spec.kubeconfig_ref.name).await?;
    let text = secret.and_then(|secret| secret.data?.remove(KUBECONFIG_KEY));
    // Helm would run its programs, too.
    let text = text.and_then(|bytes| String::from_utf8(bytes.0).ok());
    seen.kubeconfig = text.filter(|text| check(text).is_ok());
    let chart = addon.and_then(|addon| addon.spec.source.chart.as_ref());
    if let Some(reference) = chart.and_then(|chart| chart.credentials_ref.as_ref()) {
        seen.credentials = live::get::<Secret>(ctx, namespace, &reference.name).await?;
    }
    if let Some(reference) = chart.and_then(|chart| chart.ca_ref.as_ref()) {
        seen.ca = live::get::<ConfigMap>(ctx, namespace, &reference.name).await?;
    }
    Ok(seen)
}

/// Makes the Secret, and then the Job.
pub(super) async fn run(ctx: &Context, operation: &Operation) -> Result<(), Error> {
    execute::create_ours(ctx, &operation.secret).await?;
    executor_job::create(ctx, &operation.job).await
}

/// Deletes the Secret that a Job was given; what is not the ClusterAddon's own stays.
pub(super) async fn drop_inputs(ctx: &Context, object: &ClusterAddon, name: &str) -> Result<(), Error> {
    let ours = async || {
        let found = live::get::<Secret>(ctx, object.namespace(), name).await?;
        Ok::<_, Error>(found.filter(|secret| secret.is_owned_by(object.uid())))
    };
    let Some(secret) = ours().await? else { return Ok(()) };
    execute::delete(ctx, &secret, None).await?;
    // Nobody looks for it once the status does not name its Job any more.
    match ours().await? {
        Some(left) if left.uid() == secret.uid() && !left.is_deleting() => {
            let action = format!("delete Secret {name}");
            Err(Error::Failed { action, source: "it is still there".into() })
        }
        Some(_) | None => Ok(()),
    }
}
