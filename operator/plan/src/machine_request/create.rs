//! The Machines that are lacking, and why none is made.

use std::collections::BTreeSet;

use crds::machine::MachineSpec;
use crds::names::{annotation, finalizer, label};
use crds::placement::{HostNames, HostSelector};
use crds::references::LocalRef;
use crds::step::Role;
use crds::{ClusterDeployment, Machine, MachineRequest, MachineSet, ObjectExt, Reason, names};

use super::action::Action;
use super::members::Members;
use super::observed::Observed;
use crate::claims::narrow;
use crate::host_pool::{automatic_pool, selector_of_request};
use crate::{machine_set, naming};

/// Why no Machine is made now.
pub(super) struct Obstacle {
    pub reason: Reason,
    pub message: String,
}

pub(super) fn obstacle(observed: &Observed<'_>) -> Option<Obstacle> {
    let spec = &observed.request.spec;
    let because = |reason, message: String| Some(Obstacle { reason, message });
    let cluster = &spec.cluster_name;
    let Some(deployment) = observed.deployment else {
        let message =
            format!("there is no ClusterDeployment {cluster} in this namespace: make it, or cancel the request");
        return because(Reason::ClusterNotFound, message);
    };
    if deployment.is_deleting() {
        return because(Reason::ClusterDeleting, format!("cluster {cluster} is being deleted"));
    }
    if deployment.spec.paused {
        return because(Reason::Paused, format!("cluster {cluster} is paused"));
    }
    let wanted = names::worker_set(cluster, &spec.set);
    let is_usable = |set: &&MachineSet| set.spec.role == Role::Worker && !set.is_deleting();
    let Some(set) = observed.set.filter(is_usable) else {
        return because(Reason::MachineSetNotFound, not_found(deployment, &spec.set, &wanted));
    };
    match selector(observed.request, set) {
        Ok(_) => None,
        Err(why) => {
            let set = &spec.set;
            let message = format!(
                "spec.hostSelector and that of set {set} suit no Host: {why}; make another request, or change the set's"
            );
            because(Reason::SelectorsContradict, message)
        }
    }
}

fn not_found(deployment: &ClusterDeployment, set: &str, machine_set: &str) -> String {
    let sets: Vec<&str> = deployment.spec.workers.iter().map(|workers| workers.name.as_str()).collect();
    match sets.as_slice() {
        sets if sets.contains(&set) => format!("MachineSet {machine_set} is not there yet"),
        [] => format!(
            "spec.set: {set} is no set of workers of cluster {}, which has none: add it to its spec.workers, or cancel the request",
            deployment.name()
        ),
        sets => format!(
            "spec.set: {set} is no set of workers of cluster {}: it has {}; add it to its spec.workers, or cancel the request",
            deployment.name(),
            sets.join(", ")
        ),
    }
}

/// What the set and the request select together.
fn selector(request: &MachineRequest, set: &MachineSet) -> Result<Option<HostSelector>, String> {
    narrow(set.spec.template.host_selector.as_ref(), request.spec.host_selector.as_ref())
}

/// The Machines that are lacking: one for each Host that is named and has none, or as many as to come to the count.
pub(super) fn create(observed: &Observed<'_>, members: &Members<'_>) -> Vec<Action> {
    let Some(set) = observed.set else { return Vec::new() };
    let all = || members.live.iter().chain(&members.leaving);
    let mut ordinals: BTreeSet<u32> = all().filter_map(|machine| machine_set::ordinal_of(machine)).collect();
    let mut names: BTreeSet<String> = observed.machines.iter().map(|machine| machine.name().to_owned()).collect();
    let mut actions: Vec<Action> = create_pool(observed).into_iter().collect();
    let mut ordinal = 0;
    for host in lacking(observed.request, members) {
        loop {
            let is_free = ordinals.insert(ordinal);
            let machine = machine(observed.request, set, ordinal, host);
            // Two ordinals with one name would be one Machine: the second is passed over.
            if is_free && names.insert(machine.name().to_owned()) {
                actions.push(Action::CreateMachine(Box::new(machine)));
                break;
            }
            ordinal += 1;
        }
    }
    actions
}

/// The pool that says how many Hosts there are for what the request selects.
fn create_pool(observed: &Observed<'_>) -> Option<Action> {
    let sets: Vec<&MachineSet> = observed.set.into_iter().collect();
    let selector = selector_of_request(observed.request, &sets).filter(|_| !observed.has_pool)?;
    Some(Action::CreateHostPool(Box::new(automatic_pool(observed.request.namespace(), selector))))
}

/// The Host of each Machine that is lacking; `None`: any that suits.
fn lacking<'a>(request: &'a MachineRequest, members: &Members<'_>) -> Vec<Option<&'a str>> {
    let Some(hosts) = &request.spec.hosts else {
        return vec![None; request.spec.wanted().saturating_sub(members.live.len())];
    };
    let on = |machine: &Machine| machine.spec.host_ref.as_ref().map(|host| host.name.clone());
    let taken: BTreeSet<String> = members.live.iter().filter_map(|machine| on(machine)).collect();
    hosts.iter().filter(|host| !taken.contains(*host)).map(|host| Some(host.as_str())).collect()
}

/// A Machine as the set makes them, but for the Host that it may take; of the version of its cluster, whatever that
/// becomes.
fn machine(request: &MachineRequest, set: &MachineSet, ordinal: u32, host: Option<&str>) -> Machine {
    let of_set = machine_set::machine_spec(set, None);
    let spec = match host {
        // No other Host would do in its place.
        Some(host) => MachineSpec {
            host_ref: Some(LocalRef::new(host)),
            host_selector: None,
            hosts: Some(HostNames(vec![host.to_owned()])),
            ..of_set
        },
        None => MachineSpec { host_selector: selector(request, set).unwrap_or_default(), ..of_set },
    };
    let mut machine = Machine::new(&naming::machine(request.name(), request.uid(), ordinal), spec);
    machine.metadata.namespace = request.metadata.namespace.clone();
    let mut labels = machine_set::labels_of(set);
    labels.insert(label::MACHINE_REQUEST.into(), request.name().to_owned());
    machine.metadata.labels = Some(labels);
    let annotations = machine.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation::ORDINAL.into(), ordinal.to_string());
    annotations.insert(annotation::MACHINE_REQUEST_UID.into(), request.uid().to_owned());
    let id = request.spec.request_id.iter();
    annotations.extend(id.map(|id| (annotation::REQUEST_ID.to_owned(), id.clone())));
    machine.metadata.finalizers = Some(vec![finalizer::MACHINE.into()]);
    machine
}
