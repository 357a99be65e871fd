//! What others decide by of a ClusterDeployment.

use crds::cluster_deployment::DeletionPolicy;
use crds::names::condition;
use crds::{ClusterDeployment, ClusterKind, Conditions, ObjectExt};

use super::removals;
use crate::formed_cluster::FormedCluster;
use crate::lifecycle::is_installed;

impl<'a> From<&'a ClusterDeployment> for FormedCluster<'a> {
    fn from(deployment: &'a ClusterDeployment) -> Self {
        let (spec, status) = (&deployment.spec, deployment.status.as_ref());
        Self {
            kind: ClusterKind::ClusterDeployment,
            name: deployment.name(),
            uid: deployment.uid(),
            created_at: deployment.created_at().map(|time| time.0),
            is_paused: spec.paused,
            is_deleting: deployment.is_deleting(),
            detaches: spec.deletion_policy == DeletionPolicy::Detach,
            is_installed: is_installed(deployment),
            compared_since: status.and_then(|status| Some(status.compared_since.as_ref()?.0)),
            is_contradicted: deployment.condition(condition::STORE_IS_OLDER).is_some(),
            has_nodes: true,
            etcd_role: spec.etcd.topology.role(),
            control_planes: spec.control_plane.replicas,
            etcd_machines: spec.etcd.replicas.unwrap_or_default(),
            forgotten: status.map(|status| status.forgotten.as_slice()).unwrap_or_default(),
            drain_timeout_seconds: spec.machine_removal.drain_timeout_seconds,
            force_remove_after_seconds: spec.machine_removal.force_remove_after_seconds,
            removals_held: removals::held(deployment),
            terms: deployment,
            deployment: Some(deployment),
        }
    }
}
