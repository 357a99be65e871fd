//! How far a Machine and its cluster have come, as their status has recorded it.

use crds::names::condition;
use crds::{ClusterDeployment, ClusterDeploymentStatus, Machine};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Whether the Machine was made part of its cluster.
pub fn is_provisioned(machine: &Machine) -> bool {
    let status = machine.status.as_ref();
    status.is_some_and(|status| status.provisioned_at.is_some())
}

/// Whether the cluster was installed.
pub fn is_installed(deployment: &ClusterDeployment) -> bool {
    let status = deployment.status.as_ref();
    status.is_some_and(|status| status.installed_at.is_some())
}

/// Only that it is there counts.
fn untimed(condition: Condition) -> Condition {
    Condition { message: String::new(), ..condition }
}

/// Of the conditions of what forms a cluster, those that others decide by.
pub fn decisive(conditions: Vec<Condition>) -> Vec<Condition> {
    conditions.into_iter().filter(|there| there.type_ == condition::STORE_IS_OLDER).map(untimed).collect()
}

/// The ClusterDeployment without what its status only tells people, which changes with each task of a run: all that its
/// Machines and their sets decide by.
pub fn without_progress(deployment: &ClusterDeployment) -> ClusterDeployment {
    let mut deployment = deployment.clone();
    (deployment.metadata.resource_version, deployment.metadata.managed_fields) = (None, None);
    let untold = |status: ClusterDeploymentStatus| ClusterDeploymentStatus {
        observed_generation: None,
        phase: None,
        message: None,
        control_plane: None,
        workers: None,
        conditions: decisive(status.conditions),
        ..status
    };
    deployment.status = deployment.status.map(untold);
    deployment
}
