//! The object that forms a cluster of machines, of whichever kind it is.

use std::sync::Arc;

use crds::cluster_deployment::Executor;
use crds::lock::LockView;
use crds::{ClusterDeployment, ClusterKind, FormerRef, KarmadaDeployment};
use plan::formed_cluster::FormedCluster;

use crate::cache::Cache;
use crate::context::Context;
use crate::error::Error;
use crate::live;

/// The object that forms a cluster of machines.
#[derive(Clone, Debug)]
pub(crate) enum Former {
    /// A cluster of Kubernetes.
    Cluster(Arc<ClusterDeployment>),
    /// A Karmada control plane on machines.
    Plane(Arc<KarmadaDeployment>),
}

impl Former {
    /// As last seen; none: it is not there, or it is a plane in Pods, which has no machines.
    pub fn cached(cache: &Cache, namespace: &str, former: FormerRef<'_>) -> Option<Self> {
        let FormerRef { kind, name } = former;
        match kind {
            ClusterKind::ClusterDeployment => cache.cluster_deployments.get(namespace, name).map(Self::Cluster),
            ClusterKind::KarmadaDeployment => cache.karmada_deployments.get(namespace, name).and_then(Self::plane),
        }
    }

    /// The same, from the API.
    pub async fn live(ctx: &Context, namespace: &str, former: FormerRef<'_>) -> Result<Option<Self>, Error> {
        let FormerRef { kind, name } = former;
        Ok(match kind {
            ClusterKind::ClusterDeployment => {
                live::get::<ClusterDeployment>(ctx, namespace, name).await?.map(Arc::new).map(Self::Cluster)
            }
            ClusterKind::KarmadaDeployment => {
                live::get::<KarmadaDeployment>(ctx, namespace, name).await?.map(Arc::new).and_then(Self::plane)
            }
        })
    }

    fn plane(object: Arc<KarmadaDeployment>) -> Option<Self> {
        object.spec.binary.is_some().then_some(Self::Plane(object))
    }

    /// What others decide by.
    pub fn formed(&self) -> FormedCluster<'_> {
        match self {
            Self::Cluster(deployment) => (&**deployment).into(),
            Self::Plane(plane) => (&**plane).into(),
        }
    }

    /// Itself, where it is a cluster of Kubernetes.
    pub fn deployment(&self) -> Option<&ClusterDeployment> {
        match self {
            Self::Cluster(deployment) => Some(deployment),
            Self::Plane(_) => None,
        }
    }

    /// Its lock.
    pub fn lock(&self) -> LockView<'_> {
        match self {
            Self::Cluster(deployment) => deployment.lock(),
            Self::Plane(plane) => plane.lock(),
        }
    }

    /// What it says of the executor of its runs.
    pub fn executor(&self) -> Option<&Executor> {
        match self {
            Self::Cluster(deployment) => deployment.spec.executor.as_ref(),
            Self::Plane(plane) => plane.spec.binary.as_ref()?.executor.as_ref(),
        }
    }
}
