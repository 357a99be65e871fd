//! The backup that a cluster begins with: what is observed of it, of its keys, and of the machines that it was taken
//! of.

use std::sync::Arc;

use crds::{ClusterDeployment, Machine, ObjectExt};
use plan::cluster_deployment::restoring::{pending, restored_from};
use plan::key_transfer::RestoringSeen;

use super::pki_owner;
use crate::context::Context;
use crate::error::Error;
use crate::key_transfer;

/// What is known; nothing of a cluster that begins without a backup, or stands.
pub(super) async fn seen(ctx: &Context, deployment: &ClusterDeployment) -> Result<RestoringSeen, Error> {
    let Some(from) = &deployment.spec.restore_from else {
        return Ok(RestoringSeen::default());
    };
    if restored_from(deployment).is_some_and(|known| known.restored_at.is_some()) {
        return Ok(RestoringSeen::default());
    }
    let namespace = deployment.namespace();
    let former = pending(deployment).map(|pending| ctx.cache.machines.of_cluster(namespace, &pending.cluster));
    let former: Vec<Arc<Machine>> = former.unwrap_or_default();
    let former = former.into_iter().map(Arc::unwrap_or_clone).collect();
    let seen = key_transfer::seen(ctx, &pki_owner(deployment), from).await?;
    Ok(RestoringSeen { former, ..seen })
}
