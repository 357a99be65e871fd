//! How far a Machine and its cluster have come, as their status has recorded it.

use crds::{ClusterDeployment, Machine};

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
