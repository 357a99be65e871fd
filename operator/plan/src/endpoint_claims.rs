//! Clusters whose control planes would hold the same address, or speak VRRP under the same router id on one wire. One
//! of them was first; the other does not begin. Clusters of all namespaces that the operator watches are compared: a
//! wire knows no namespaces, and no kinds.

use std::net::Ipv4Addr;

use crds::networking::{Endpoint, EndpointProvider};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::inputs::endpoint::{ROUTER_IDS, router_id};

/// Two addresses are taken for ones of the same wire when they share so many bits: what is larger is routed.
const SAME_WIRE_BITS: u32 = 16;

/// An endpoint that an object asks for.
#[derive(Clone, Copy, Debug)]
pub struct EndpointClaim<'a> {
    /// The object's kind.
    pub kind: &'static str,
    /// Its name, namespace, UID and time of creation.
    pub metadata: &'a ObjectMeta,
    /// How far the cluster is that it forms.
    pub standing: Standing,
    /// What it asks for.
    pub endpoint: &'a Endpoint,
}

/// How far a cluster is: one that stands is before one that has begun, and that before one that is wished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It stands.
    Installed,
    /// Machines may have the endpoint's address already.
    Begun,
    /// Nothing was done for it.
    Wished,
}

/// What another cluster has that this one asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rival {
    /// The address.
    Address {
        /// Kind, and `namespace/name`, of who has it.
        of: (&'static str, String),
    },
    /// The VRRP router id.
    RouterId {
        /// The id.
        id: i32,
        /// Kind, and `namespace/name`, of who has it.
        of: (&'static str, String),
        /// One that no cluster of the wire has.
        free: Option<i32>,
    },
}

/// The cluster that was there first with what this one asks for. One that is installed asks for nothing any more.
pub fn find(ours: &EndpointClaim<'_>, others: &[EndpointClaim<'_>]) -> Option<Rival> {
    let endpoint = ours.endpoint;
    if ours.standing == Standing::Installed {
        return None;
    }
    let mut others: Vec<&EndpointClaim<'_>> =
        others.iter().filter(|other| other.metadata.uid != ours.metadata.uid).collect();
    others.sort_by_key(|other| rank(other));
    let first = |found: &&&EndpointClaim<'_>| rank(found) < rank(ours);
    // Of two that others answer for, a load balancer may tell one from the other.
    let same = |found: &&&EndpointClaim<'_>| {
        found.endpoint.host == endpoint.host && (is_held(found.endpoint) || is_held(endpoint))
    };
    if let Some(other) = others.iter().filter(first).find(same) {
        return Some(Rival::Address { of: title(other) });
    }
    if !is_held(endpoint) {
        return None;
    }
    let id = router_id(endpoint);
    let of_wire =
        |found: &&&EndpointClaim<'_>| is_held(found.endpoint) && on_one_wire(&found.endpoint.host, &endpoint.host);
    let has_it = |found: &&&EndpointClaim<'_>| router_id(found.endpoint) == id;
    let other = others.iter().filter(first).filter(of_wire).find(has_it)?;
    let taken: Vec<i32> = others.iter().filter(of_wire).map(|other| router_id(other.endpoint)).collect();
    Some(Rival::RouterId { id, of: title(other), free: ROUTER_IDS.clone().find(|free| !taken.contains(free)) })
}

fn is_held(endpoint: &Endpoint) -> bool {
    endpoint.provider == EndpointProvider::Keepalived
}

/// Who is first: by how far it is, then by age.
fn rank<'a>(claim: &EndpointClaim<'a>) -> (Standing, Option<Time>, &'a str, &'a str) {
    let metadata = claim.metadata;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let name = metadata.name.as_deref().unwrap_or_default();
    (claim.standing, metadata.creation_timestamp.clone(), namespace, name)
}

fn on_one_wire(one: &str, other: &str) -> bool {
    let network = |address: &str| {
        let address: Ipv4Addr = address.parse().ok()?;
        u32::from(address).checked_shr(32 - SAME_WIRE_BITS)
    };
    network(one).is_some_and(|one| Some(one) == network(other))
}

fn title(claim: &EndpointClaim<'_>) -> (&'static str, String) {
    let (_, _, namespace, name) = rank(claim);
    (claim.kind, format!("{namespace}/{name}"))
}

#[cfg(test)]
mod tests;
