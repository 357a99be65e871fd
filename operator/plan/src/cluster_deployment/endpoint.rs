//! The cluster's endpoint: where the API servers behind it are, and whether its address can be held.

use crds::cluster_deployment::ControlPlaneEndpoint;
use crds::networking::{Endpoint, EndpointProvider};
use crds::step::Role;
use serde_json::Value;

use super::problem::Problem;
use super::scene::{Member, Scene};
use crate::inputs::address_in_cluster;

const API_SERVER_PORT: i32 = 6443;

/// Where each API server answers, for load balancers and DNS. One that leaves stays in the list until its Host is given
/// back, and gets no clients.
pub(super) fn control_planes(scene: &Scene<'_>) -> Vec<ControlPlaneEndpoint> {
    let staying = scene.live.iter().map(|member| (member, true));
    let leaving = scene.leaving.iter().map(|member| (member, false));
    staying
        .chain(leaving)
        .filter(|(member, _)| member.machine.spec.role == Role::ControlPlane)
        .filter_map(|(member, stays)| {
            Some(ControlPlaneEndpoint {
                machine: member.name().to_owned(),
                host: address_in_cluster(member.host?).to_owned(),
                port: API_SERVER_PORT,
                ready: stays && member.is_provisioned() && member.is_ready(),
            })
        })
        .take(16)
        .collect()
}

/// The endpoint, where the control planes hold it themselves.
pub(super) fn held<'a>(scene: &Scene<'a>) -> Option<&'a Endpoint> {
    let endpoint = scene.deployment.spec.control_plane.endpoint.as_ref()?;
    (endpoint.provider == EndpointProvider::Keepalived).then_some(endpoint)
}

/// The variables of a run with these control planes behind the endpoint.
pub(super) fn backends(members: &[Member<'_>]) -> Value {
    let mut addresses: Vec<&str> = members
        .iter()
        .filter_map(|member| member.host)
        .map(address_in_cluster)
        .collect();
    addresses.sort_unstable();
    crate::inputs::endpoint::backends(&addresses)
}

/// Why its address cannot be held.
pub(super) fn problem(scene: &Scene<'_>) -> Option<Problem> {
    let address = &held(scene)?.host;
    let says = |message: String| {
        Some(Problem {
            reason: "VIPInUse",
            message: format!(
                "spec.controlPlane.endpoint.host {address}: {message}; the endpoint of a cluster is fixed: make it anew with a free address of the machines' network"
            ),
            ends_unseen: true,
        })
    };
    let is_of = |host: &&&crds::Host| {
        host.spec.address == *address || host.spec.internal_address.as_ref() == Some(address)
    };
    if let Some(host) = scene.observed.hosts.iter().find(is_of) {
        let name = host.metadata.name.as_deref().unwrap_or_default();
        return says(format!("Host {name} has this address"));
    }
    let age = |deployment: &crds::ClusterDeployment| {
        (
            deployment.metadata.creation_timestamp.clone(),
            deployment.metadata.name.clone(),
        )
    };
    let other = scene.observed.deployments.iter().find(|other| {
        let endpoint = other.spec.control_plane.endpoint.as_ref();
        other.metadata.uid != scene.deployment.metadata.uid
            && age(other) < age(scene.deployment)
            && endpoint.is_some_and(|endpoint| endpoint.host == *address)
    })?;
    let name = other.metadata.name.as_deref().unwrap_or_default();
    says(format!("it is the endpoint of ClusterDeployment {name}"))
}
