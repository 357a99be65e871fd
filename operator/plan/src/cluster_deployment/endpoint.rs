//! The cluster's endpoint: where the API servers behind it are, and whether its address can be held.

use crds::cluster_deployment::ControlPlaneEndpoint;
use crds::networking::{API_SERVER_PORT, Endpoint, EndpointProvider};
use crds::step::Role;
use crds::{ClusterDeployment, ObjectExt, Reason};
use serde_json::Value;

use super::problem::Problem;
use super::state::{ClusterMachine, ClusterState};
use crate::endpoint_claims::{self, EndpointClaim, Rival, Standing};
use crate::inputs::address_in_cluster;
use crate::karmada_deployment::plane_endpoint_claim;

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

/// The endpoint that a ClusterDeployment asks for; none: it asks for none.
pub(crate) fn claim(deployment: &ClusterDeployment) -> Option<EndpointClaim<'_>> {
    let endpoint = deployment.spec.control_plane.endpoint.as_ref()?;
    let standing = match &deployment.status {
        Some(status) if status.installed_at.is_some() => Standing::Installed,
        Some(status) if status.first_control_plane.is_some() => Standing::Begun,
        _ => Standing::Wished,
    };
    Some(EndpointClaim { kind: "ClusterDeployment", metadata: &deployment.metadata, standing, endpoint })
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
    let of_clusters = state.observed.deployments.iter().filter_map(|other| claim(other));
    let of_planes = state.observed.planes.iter().filter_map(|other| plane_endpoint_claim(other));
    let others: Vec<EndpointClaim<'_>> = of_clusters.chain(of_planes).collect();
    match endpoint_claims::find(&claim(state.deployment)?, &others)? {
        Rival::Address { of: (kind, of) } => taken(format!("it is the endpoint of {kind} {of}")),
        Rival::RouterId { id, of: (kind, of), free } => {
            let free = free.map_or("none is free there".into(), |free| format!("{free} is free"));
            says(
                Reason::RouterIDInUse,
                format!(
                    "spec.controlPlane.endpoint.keepalived.virtualRouterID {id} is that of {kind} {of}, in the same network as far as its address tells: make this cluster anew with another one of 1 to 255 ({free})"
                ),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use crds::ClusterDeployment;

    use super::claim;
    use crate::endpoint_claims::Standing;

    #[test]
    fn a_cluster_claims_its_endpoint_by_how_far_it_is() {
        let check = |endpoint: &str, status: &str, expected: Option<Standing>| {
            let yaml = format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: a}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1{endpoint}}}}}, status: {{{status}}}}}"
            );
            let deployment: ClusterDeployment = serde_yaml::from_str(&yaml).unwrap();
            assert_eq!(claim(&deployment).map(|claim| claim.standing), expected, "{status}");
        };
        let endpoint = ", endpoint: {host: 10.0.0.9, provider: Keepalived}";
        check("", "", None);
        check(endpoint, "", Some(Standing::Wished));
        check(endpoint, "firstControlPlane: m", Some(Standing::Begun));
        check(endpoint, "installedAt: '2026-01-01T01:00:00Z', firstControlPlane: m", Some(Standing::Installed));
    }
}
