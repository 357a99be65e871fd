//! Why a plane's endpoint cannot be held, or is held by another one: clusters and planes are compared alike.

use crds::networking::EndpointProvider;
use crds::{Host, ObjectExt, Reason};

use super::super::observed::Observed;
use super::endpoint_claim::claim;
use crate::addon::Problem;
use crate::cluster_deployment;
use crate::endpoint_claims::{self, EndpointClaim, Rival};

/// Why its address cannot be held, or is held by another one.
pub(in super::super) fn problem(observed: &Observed<'_>) -> Option<Problem> {
    let ours = claim(observed.object)?;
    let address = &ours.endpoint.host;
    let taken = |who: String| Problem {
        reason: Reason::VIPInUse,
        message: format!(
            "spec.binary.endpoint.host {address}: {who}; the endpoint of a plane is fixed: make it anew with a free address of the machines' network"
        ),
    };
    let is_of = |host: &&&Host| host.spec.address == *address || host.spec.internal_address.as_ref() == Some(address);
    let is_held = ours.endpoint.provider == EndpointProvider::Keepalived;
    if let Some(host) = observed.machines.hosts.iter().find(is_of).filter(|_| is_held) {
        return Some(taken(format!("Host {} has this address", host.name())));
    }
    let of_clusters =
        observed.machines.deployments.iter().filter_map(|other| cluster_deployment::endpoint_claim(other));
    let of_planes = observed.others.iter().filter_map(|other| claim(other));
    let others: Vec<EndpointClaim<'_>> = of_clusters.chain(of_planes).collect();
    Some(match endpoint_claims::find(&ours, &others)? {
        Rival::Address { of: (kind, of) } => taken(format!("it is the endpoint of {kind} {of}")),
        Rival::RouterId { id, of: (kind, of), free } => {
            let free = free.map_or("none is free there".into(), |free| format!("{free} is free"));
            Problem {
                reason: Reason::RouterIDInUse,
                message: format!(
                    "spec.binary.endpoint.keepalived.virtualRouterID {id} is that of {kind} {of}, in the same network as far as its address tells: make this plane anew with another one of 1 to 255 ({free})"
                ),
            }
        }
    })
}
