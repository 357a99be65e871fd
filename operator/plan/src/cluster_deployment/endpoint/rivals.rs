//! Clusters whose control planes would hold the same address, or speak VRRP under the same router id on one wire. One
//! of them was first; the other does not begin. Clusters of all namespaces that the operator watches are compared: a
//! wire knows no namespaces.

use std::net::Ipv4Addr;

use crds::ClusterDeployment;
use crds::networking::{Endpoint, EndpointProvider};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::inputs::endpoint::{ROUTER_IDS, router_id};

/// Two addresses are taken for ones of the same wire when they share so many bits: what is larger is routed.
const SAME_WIRE_BITS: u32 = 16;

/// What another cluster has that this one asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rival {
    /// The address; `namespace/name` of who has it.
    Address(String),
    /// The VRRP router id.
    RouterId {
        /// The id.
        id: i32,
        /// `namespace/name` of who has it.
        of: String,
        /// One that no cluster of the wire has.
        free: Option<i32>,
    },
}

/// The cluster that was there first with what this one asks for. One that is installed asks for nothing any more.
pub(super) fn find(ours: &ClusterDeployment, others: &[&ClusterDeployment]) -> Option<Rival> {
    let endpoint = ours.spec.control_plane.endpoint.as_ref()?;
    if rank(ours).0 == Standing::Installed {
        return None;
    }
    let mut others: Vec<(&ClusterDeployment, &Endpoint)> = others
        .iter()
        .filter(|other| other.metadata.uid != ours.metadata.uid)
        .filter_map(|other| Some((*other, other.spec.control_plane.endpoint.as_ref()?)))
        .collect();
    others.sort_by_key(|(other, _)| rank(other));
    let first = |found: &&(&ClusterDeployment, &Endpoint)| rank(found.0) < rank(ours);
    // Of two that others answer for, a load balancer may tell one from the other.
    let same = |found: &&(&ClusterDeployment, &Endpoint)| {
        found.1.host == endpoint.host && (is_held(found.1) || is_held(endpoint))
    };
    if let Some((other, _)) = others.iter().filter(first).find(same) {
        return Some(Rival::Address(title(other)));
    }
    if !is_held(endpoint) {
        return None;
    }
    let id = router_id(endpoint);
    let of_wire =
        |found: &&(&ClusterDeployment, &Endpoint)| is_held(found.1) && on_one_wire(&found.1.host, &endpoint.host);
    let has_it = |found: &&(&ClusterDeployment, &Endpoint)| router_id(found.1) == id;
    let (other, _) = others.iter().filter(first).filter(of_wire).find(has_it)?;
    let taken: Vec<i32> = others.iter().filter(of_wire).map(|(_, endpoint)| router_id(endpoint)).collect();
    Some(Rival::RouterId { id, of: title(other), free: ROUTER_IDS.clone().find(|free| !taken.contains(free)) })
}

fn is_held(endpoint: &Endpoint) -> bool {
    endpoint.provider == EndpointProvider::Keepalived
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Installed,
    Begun,
    Wished,
}

/// Who is first: a cluster that stands before one that has begun, before one that is wished; of those the oldest.
fn rank(deployment: &ClusterDeployment) -> (Standing, Option<Time>, &str, &str) {
    let status = deployment.status.as_ref();
    let metadata = &deployment.metadata;
    let standing = match status {
        Some(status) if status.installed_at.is_some() => Standing::Installed,
        Some(status) if status.first_control_plane.is_some() => Standing::Begun,
        _ => Standing::Wished,
    };
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let name = metadata.name.as_deref().unwrap_or_default();
    (standing, metadata.creation_timestamp.clone(), namespace, name)
}

fn on_one_wire(one: &str, other: &str) -> bool {
    let network = |address: &str| {
        let address: Ipv4Addr = address.parse().ok()?;
        u32::from(address).checked_shr(32 - SAME_WIRE_BITS)
    };
    network(one).is_some_and(|one| Some(one) == network(other))
}

fn title(deployment: &ClusterDeployment) -> String {
    let (_, _, namespace, name) = rank(deployment);
    format!("{namespace}/{name}")
}

#[cfg(test)]
mod tests;
