//! Which machines a plane has, for all that certificates, files and versions follow from.

use std::collections::BTreeMap;

use crds::cluster_deployment::EtcdTopology;
use crds::networking::EndpointProvider;
use crds::step::Role;
use crds::{KarmadaDeployment, Machine, ObjectExt};

use super::super::component::Component;
use super::super::endpoint::url;
use super::super::seats::{MachinesSeen, Seat, Seats};
use super::order::Part;
use super::placed::{placed, version};
use crate::cluster_machine::{ClusterMachine, gather};
use crate::departure::EtcdMembership;
use crate::formed_cluster::FormedCluster;
use crate::former::is_former;
use crate::inputs::address_in_cluster;

/// The seats of a plane, by what was observed of its machines.
pub fn seats(object: &KarmadaDeployment, seen: &MachinesSeen<'_>) -> Seats {
    let cluster = FormedCluster::from(object);
    let is_own = |machine: &&&Machine| !is_former(machine, cluster, seen.sets);
    let machines: Vec<&Machine> = seen.machines.iter().filter(is_own).copied().collect();
    let (live, leaving) = gather(&machines, seen.hosts);
    let of_plane: Vec<ClusterMachine<'_>> =
        live.iter().filter(|member| member.machine.spec.role == Role::ControlPlane).copied().collect();
    Seats {
        control_planes: of_plane.iter().filter_map(seat).collect(),
        etcd: match object.spec.etcd_topology() {
            EtcdTopology::Dedicated => {
                let membership = EtcdMembership::new(&machines, cluster, seen.runs);
                urls(&membership, live.iter().chain(&leaving).copied().collect())
            }
            EtcdTopology::Stacked | EtcdTopology::External => Vec::new(),
        },
        is_served: is_served(object, &of_plane, seen),
        has_estimators: of_plane.iter().any(|machine| placed(machine, Part::Estimators, seen.runs).is_some()),
        versions: versions(&of_plane, seen),
    }
}

fn seat(member: &ClusterMachine<'_>) -> Option<Seat> {
    let host = member.host?;
    Some(Seat {
        machine: member.name().to_owned(),
        host: host.name().to_owned(),
        address: address_in_cluster(host).to_owned(),
        is_provisioned: member.is_provisioned(),
    })
}

/// Where the members of a dedicated etcd answer.
fn urls(membership: &EtcdMembership<'_>, all: Vec<ClusterMachine<'_>>) -> Vec<String> {
    let members = membership.members();
    let is_member =
        |one: &&ClusterMachine<'_>| members.iter().any(|member| member.metadata.uid == one.machine.metadata.uid);
    let mut urls: Vec<String> =
        all.iter().filter(is_member).filter_map(|one| Some(url(address_in_cluster(one.host?), 2379))).collect();
    urls.sort_unstable();
    urls
}

/// Whether runs have brought all that an answer at the endpoint comes from.
fn is_served(object: &KarmadaDeployment, machines: &[ClusterMachine<'_>], seen: &MachinesSeen<'_>) -> bool {
    let endpoint = object.spec.binary.as_ref().and_then(|binary| binary.endpoint.as_ref());
    let holder = endpoint.filter(|endpoint| endpoint.provider == EndpointProvider::Keepalived);
    let needed = [Some(Part::Component(Component::ApiServer)), holder.map(|_| Part::LoadBalancer)];
    let has = |machine: &ClusterMachine<'_>, part: Part| placed(machine, part, seen.runs).is_some();
    machines.iter().any(|machine| needed.into_iter().flatten().all(|part| has(machine, part)))
}

/// The newest of each component: what is brought from machine to machine has begun with the first.
fn versions(machines: &[ClusterMachine<'_>], seen: &MachinesSeen<'_>) -> BTreeMap<Component, String> {
    let numbers = |version: &str| version.split('.').map(str::parse).collect::<Result<Vec<u32>, _>>().ok();
    let newest = |component: Component| {
        let placed = machines.iter().filter_map(|machine| placed(machine, Part::of(component), seen.runs));
        let versions = placed.filter_map(|placed| version(&placed.digest).map(str::to_owned));
        Some((component, versions.max_by_key(|version| numbers(version))?))
    };
    Component::every().filter_map(newest).collect()
}
