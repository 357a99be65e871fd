//! An external etcd: whether the API servers can be given what they need to speak to it, and whether what they would
//! have there is this cluster's alone.

use std::collections::BTreeSet;

use crds::ClusterDeployment;
use crds::ObjectExt;
use crds::Reason;
use crds::cluster_deployment::EtcdTopology;

use super::problem::Problem;
use super::state::ClusterState;

/// Whether the cluster's etcd is run by others.
pub(super) fn is_external(deployment: &ClusterDeployment) -> bool {
    deployment.spec.etcd.topology == EtcdTopology::External
}

/// Why nothing is begun with it. Secrets are not followed.
pub(super) fn problem(state: &ClusterState<'_>) -> Option<Problem> {
    if !is_external(state.deployment) {
        return None;
    }
    match state.observed.etcd_client {
        Some(Err(refused)) => {
            Some(Problem { reason: refused.reason, message: refused.message.clone(), ends_unseen: true })
        }
        Some(Ok(_)) | None => in_use(state),
    }
}

/// Two clusters below one prefix would take each other's objects for their own. The cluster that was there first has
/// it; one that is installed stays as it is.
fn in_use(state: &ClusterState<'_>) -> Option<Problem> {
    if state.installed.is_some() {
        return None;
    }
    let ours = state.deployment;
    let age = |deployment: &ClusterDeployment| {
        let metadata = &deployment.metadata;
        (metadata.creation_timestamp.clone(), metadata.namespace.clone(), metadata.name.clone())
    };
    let endpoints: BTreeSet<&String> = ours.spec.etcd.endpoints.iter().collect();
    let prefix = ours.spec.etcd.prefix();
    let (other, endpoint) = state.observed.deployments.iter().find_map(|other| {
        let is_before = other.metadata.uid != ours.metadata.uid && is_external(other) && age(other) < age(ours);
        let shared = other.spec.etcd.endpoints.iter().find(|endpoint| endpoints.contains(endpoint));
        shared.filter(|_| is_before && other.spec.etcd.prefix() == prefix).map(|endpoint| (other, endpoint))
    })?;
    Some(Problem {
        reason: Reason::EtcdInUse,
        ends_unseen: true,
        message: format!(
            "spec.etcd.endpoints: {endpoint} has the data of ClusterDeployment {}/{} below {prefix}: make this cluster with another spec.etcd.prefix or another etcd, or delete that one",
            other.namespace(),
            other.name(),
        ),
    })
}
