//! What is to be applied to a cluster: the revision that it may have, as this cluster gets it.

use crds::{Addon, Cluster, ClusterAddon, ClusterDeployment, ObjectExt};
use plan::addon::selection::labels;
use plan::cluster_addon::Wanted;
use plan::cluster_addon::chart::prepared::prepare_chart;
use plan::cluster_addon::facts::facts;
use plan::cluster_addon::prepared::prepare;

use crate::addon::content;
use crate::context::Context;
use crate::error::Error;

/// What is to be applied.
pub(super) async fn wanted(
    ctx: &Context,
    object: &ClusterAddon,
    addon: &Addon,
    cluster: &Cluster,
    deployment: Option<&ClusterDeployment>,
) -> Result<Wanted, Error> {
    let Some(name) = object.spec.revision.as_ref().filter(|_| !object.is_deleting()) else {
        return Ok(Wanted::Nothing);
    };
    let revision = match content::read(ctx, addon, name).await? {
        Ok(revision) => revision,
        Err(why) => return Ok(Wanted::NoContent(why)),
    };
    if let Some(chart) = &revision.chart {
        let labels = labels(cluster, deployment);
        let prepared = prepare_chart(addon.name(), name, &revision, chart, (cluster.name(), &labels));
        return Ok(Wanted::Chart(Box::new(prepared)));
    }
    let facts = facts(addon, revision.version.as_deref(), cluster, deployment);
    Ok(match prepare(addon.name(), name, revision, &facts) {
        Ok(prepared) => Wanted::Documents(Box::new(prepared)),
        Err(problem) => Wanted::Invalid(problem),
    })
}
