//! What else is in a plane's namespace, as the caches show it.

use std::sync::Arc;

use crds::{Addon, Cluster, ClusterAddon, ClusterDeployment, KarmadaDeployment, ObjectExt};
use plan::karmada_deployment::members::Neighbours as Beside;

use crate::cache::refs;
use crate::context::Context;

/// What else is in the namespace.
pub(in crate::karmada_deployment) struct Neighbours {
    clusters: Vec<Arc<Cluster>>,
    deployments: Vec<Arc<ClusterDeployment>>,
    addons: Vec<Arc<Addon>>,
    cluster_addons: Vec<Arc<ClusterAddon>>,
}

impl Neighbours {
    pub(super) fn read(ctx: &Context, object: &KarmadaDeployment) -> Self {
        let (cache, namespace) = (&ctx.cache, object.namespace());
        Self {
            clusters: cache.clusters.list(namespace, |_| true),
            deployments: cache.cluster_deployments.list(namespace, |_| true),
            addons: cache.addons.list(namespace, |_| true),
            cluster_addons: cache.cluster_addons.list(namespace, |_| true),
        }
    }

    /// As the planner looks at them.
    pub fn refs(&self) -> Beside<'_> {
        Beside {
            clusters: refs(&self.clusters),
            deployments: refs(&self.deployments),
            addons: refs(&self.addons),
            cluster_addons: refs(&self.cluster_addons),
        }
    }
}
