//! The cluster's endpoint: where the API servers behind it are, and whether its address can be held.

mod rivals;

use crds::ObjectExt;
use crds::Reason;
use crds::cluster_deployment::ControlPlaneEndpoint;
use crds::networking::{API_SERVER_PORT, Endpoint, EndpointProvider};
use crds::step::Role;
use serde_json::Value;

use rivals::Rival;

use super::problem::Problem;
use super::state::{ClusterMachine, ClusterState};
use crate::inputs::address_in_cluster;

/// Where each API server answers, for load balancers and DNS. One that leaves stays in the list until its Host is given
/// back, and gets no clients.
pub(super) fn control_planes(state: &ClusterState<'_>) -> Vec<ControlPlaneEndpoint> {
    let staying = state.live.iter().map(|member| (member, true));
    let leaving = state.leaving.iter().map(|member| (member, false));
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
pub(super) fn held<'a>(state: &ClusterState<'a>) -> Option<&'a Endpoint> {
    let endpoint = state.deployment.spec.control_plane.endpoint.as_ref()?;
    (endpoint.provider == EndpointProvider::Keepalived).then_some(endpoint)
}

/// The variables of a run with these control planes behind the endpoint.
pub(super) fn backends(members: &[ClusterMachine<'_>]) -> Value {
    let mut addresses: Vec<&str> = members.iter().filter_map(|member| member.host).map(address_in_cluster).collect();
    addresses.sort_unstable();
    crate::inputs::endpoint::backends(&addresses)
}

/// Why its address cannot be held, or is held by another cluster.
pub(super) fn problem(state: &ClusterState<'_>) -> Option<Problem> {
    let address = &state.deployment.spec.control_plane.endpoint.as_ref()?.host;
    let says = |reason, message: String| Some(Problem { reason, message, ends_unseen: true });
    let taken = |who: String| {
        says(
            Reason::VIPInUse,
            format!(
                "spec.controlPlane.endpoint.host {address}: {who}; the endpoint of a cluster is fixed: make it anew with a free address of the machines' network"
            ),
        )
    };
    let is_of =
        |host: &&&crds::Host| host.spec.address == *address || host.spec.internal_address.as_ref() == Some(address);
    if let Some(host) = state.observed.hosts.iter().find(is_of)
        && held(state).is_some()
    {
        let name = host.name();
        return taken(format!("Host {name} has this address"));
    }
    match rivals::find(state.deployment, state.observed.deployments)? {
        Rival::Address(of) => taken(format!("it is the endpoint of ClusterDeployment {of}")),
        Rival::RouterId { id, of, free } => {
            let free = free.map_or("none is free there".into(), |free| format!("{free} is free"));
            says(
                Reason::RouterIDInUse,
                format!(
                    "spec.controlPlane.endpoint.keepalived.virtualRouterID {id} is that of ClusterDeployment {of}, in the same network as far as its address tells: make this cluster anew with another one of 1 to 255 ({free})"
                ),
            )
        }
    }
}
