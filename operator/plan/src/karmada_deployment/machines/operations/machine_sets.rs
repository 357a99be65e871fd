//! The MachineSets that a plane wants: of the machines with all components, and of a dedicated etcd.

use std::collections::BTreeMap;

use crds::cluster_deployment::EtcdTopology;
use crds::machine_set::{MachineSetSpec, MachineTemplate};
use crds::names::{label, plane_control_plane_set, plane_etcd_set};
use crds::references::controller_ref;
use crds::step::Role;
use crds::{ClusterKind, MachineSet, ObjectExt};

use super::super::act::Act;
use super::super::part_wanted::Basis;
use super::super::proposal::{Proposal, Round};
use super::super::state::PlaneState;

/// A set that is wanted.
struct Wanted {
    name: String,
    role: Role,
    replicas: i32,
    template: MachineTemplate,
}

pub(super) fn propose(state: &PlaneState<'_>, _: &Basis<'_>, _: &Round) -> Proposal {
    Proposal::acts(wanted(state).iter().filter_map(|wanted| apply(state, wanted)).collect())
}

fn wanted(state: &PlaneState<'_>) -> Vec<Wanted> {
    let Some(binary) = state.object.spec.binary.as_ref() else { return Vec::new() };
    let name = state.object.name();
    let machines = &binary.control_plane;
    let template = MachineTemplate {
        host_selector: machines.host_selector.clone(),
        hosts: machines.hosts.clone(),
        ..MachineTemplate::default()
    };
    let mut sets = vec![Wanted {
        name: plane_control_plane_set(name),
        role: Role::ControlPlane,
        replicas: machines.replicas,
        template,
    }];
    let dedicated = binary.etcd.as_ref().filter(|_| state.object.spec.etcd_topology() == EtcdTopology::Dedicated);
    sets.extend(dedicated.map(|etcd| Wanted {
        name: plane_etcd_set(name),
        role: Role::Etcd,
        replicas: etcd.replicas.unwrap_or_default(),
        template: MachineTemplate {
            host_selector: etcd.host_selector.clone(),
            hosts: etcd.hosts.clone(),
            ..MachineTemplate::default()
        },
    }));
    sets
}

fn apply(state: &PlaneState<'_>, wanted: &Wanted) -> Option<Act> {
    let there = state.seen.sets.iter().find(|set| set.name() == wanted.name);
    let is_foreign = |set: &&&MachineSet| !state.owner.owns(&set.metadata);
    // Another's is not taken over: `spec_problem` says so.
    if there.is_some_and(|set| set.is_deleting()) || there.filter(is_foreign).is_some() {
        return None;
    }
    let name = state.object.name();
    let labels = BTreeMap::from([
        (label::CLUSTER.to_owned(), name.to_owned()),
        (label::ROLE.to_owned(), wanted.role.name().to_owned()),
    ]);
    if there.is_some_and(|set| is_as_wanted(set, wanted, &labels)) {
        return None;
    }
    let mut set = MachineSet::new(
        &wanted.name,
        MachineSetSpec {
            cluster_name: name.to_owned(),
            cluster_kind: ClusterKind::KarmadaDeployment,
            role: wanted.role,
            replicas: wanted.replicas,
            surge: 0,
            template: wanted.template.clone(),
            mode: there.map(|set| set.spec.mode).unwrap_or_default(),
            deletion: there.map(|set| set.spec.deletion.clone()).unwrap_or_default(),
            min_ready_seconds: 0,
        },
    );
    set.metadata.namespace = state.object.metadata.namespace.clone();
    set.metadata.labels = Some(labels);
    set.metadata.owner_references = controller_ref(state.object).map(|owner| vec![owner]);
    let mut object = serde_json::to_value(&set).unwrap_or_default();
    // What is someone else's to choose is not claimed: how machines are made, and which go first.
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.retain(|field, _| !["mode", "deletion"].contains(&field.as_str()));
    }
    Some(Act::ApplyMachineSet { name: wanted.name.clone(), object: Box::new(object) })
}

fn is_as_wanted(set: &MachineSet, wanted: &Wanted, labels: &BTreeMap<String, String>) -> bool {
    let carried = set.metadata.labels.as_ref();
    wanted.replicas == set.spec.replicas
        && set.spec.template == wanted.template
        && labels.iter().all(|(key, value)| carried.and_then(|carried| carried.get(key)) == Some(value))
}
