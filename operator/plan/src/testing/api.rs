//! What the API server and the garbage collector make of what is written.

mod deployment;
mod host;
mod machine;
mod node;
mod request;
mod set;

use crds::names::annotation;
use crds::{
    ClusterDeploymentStatus, Host, Machine, MachineRequestStatus, MachineSet, MachineSetStatus, MachineStatus,
    ObjectExt, PlaybookRun,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::world::World;
use crate::{cluster_deployment, machine as machine_plan, machine_request, machine_set};

/// Anything that a controller writes: of clusters, sets and requests by their names, of Machines by their UIDs.
#[derive(Clone, Debug)]
pub enum Write {
    Deployment(String, Box<cluster_deployment::Action>),
    Set(machine_set::Action),
    Request(String, Box<machine_request::Action>),
    Machine(String, Box<machine_plan::Action>),
    DeploymentStatus(String, Box<ClusterDeploymentStatus>),
    SetStatus(String, Box<MachineSetStatus>),
    RequestStatus(String, Box<MachineRequestStatus>),
    MachineStatus(String, Box<MachineStatus>),
}

impl World {
    pub(super) fn apply(&mut self, write: &Write) {
        match write.clone() {
            Write::Deployment(cluster, action) => self.apply_to_deployment(&cluster, *action),
            Write::Set(action) => self.apply_to_set(action),
            Write::Request(name, action) => self.apply_to_request(&name, *action),
            Write::Machine(uid, action) => self.apply_to_machine(&uid, *action),
            Write::DeploymentStatus(cluster, status) => self.cluster_mut(&cluster).deployment.status = Some(*status),
            Write::SetStatus(name, status) => {
                if let Some(set) = self.set_named(&name) {
                    set.status = Some(*status);
                }
            }
            Write::RequestStatus(name, status) => {
                if let Some(request) = self.request_named(&name) {
                    request.status = Some(*status);
                }
            }
            Write::MachineStatus(uid, status) => {
                if let Some(machine) = self.machine_with(&uid) {
                    machine.status = Some(*status);
                }
            }
        }
    }

    /// A deletion: the finalizer holds it. A second one changes nothing.
    pub fn mark_deleted(&mut self, deleted: &Machine) {
        let now = self.time();
        if let Some(machine) = self.machine_with(deleted.uid()).filter(|machine| !machine.is_deleting()) {
            machine.metadata.deletion_timestamp = Some(now);
            machine.metadata.generation = machine.metadata.generation.map(|number| number + 1);
        }
    }

    /// What asks to forget a Machine, for the Machine as it is now.
    pub fn force_remove(&mut self, name: &str) {
        if let Some(machine) = self.machine(name) {
            let generation = machine.generation().to_string();
            annotate(&mut machine.metadata, annotation::FORCE_REMOVE, generation);
        }
    }

    pub fn machine(&mut self, name: &str) -> Option<&mut Machine> {
        self.machines.iter_mut().find(|machine| machine.name() == name)
    }

    fn machine_with(&mut self, uid: &str) -> Option<&mut Machine> {
        self.machines.iter_mut().find(|machine| machine.uid() == uid)
    }

    fn set_named(&mut self, name: &str) -> Option<&mut MachineSet> {
        self.sets.iter_mut().find(|set| set.name() == name)
    }

    /// The Host, if nobody has written it since it was read.
    fn unchanged(&mut self, read: &Host) -> Option<&mut Host> {
        self.hosts.iter_mut().find(|host| {
            host.metadata.name == read.metadata.name && host.metadata.resource_version == read.metadata.resource_version
        })
    }

    /// Changes the Host's spec, if nobody has written it since it was read.
    fn change_host(&mut self, read: &Host, change: impl FnOnce(&mut Host)) {
        if let Some(host) = self.unchanged(read) {
            change(host);
            host.metadata.generation = host.metadata.generation.map(|number| number + 1);
            written(&mut host.metadata);
        }
    }

    /// Creates a Machine, unless there is one of its name.
    fn create_machine(&mut self, mut machine: Machine) {
        if self.machine(machine.name()).is_none() {
            self.stamp(&mut machine.metadata);
            self.machines.push(machine);
        }
    }

    /// Creates a run, unless there is one of its name.
    fn create_run(&mut self, mut run: PlaybookRun) {
        if self.runs.iter().all(|other| other.metadata.name != run.metadata.name) {
            self.stamp(&mut run.metadata);
            self.runs.push(run);
        }
    }

    fn delete_run(&mut self, run: &PlaybookRun) {
        self.runs.retain(|other| other.metadata.uid != run.metadata.uid);
    }
}

pub(super) fn annotate(metadata: &mut ObjectMeta, key: &str, value: String) {
    metadata.annotations.get_or_insert_default().insert(key.into(), value);
}

/// It has another resourceVersion.
pub(super) fn written(metadata: &mut ObjectMeta) {
    let version = metadata.resource_version.as_deref().unwrap_or_default();
    let version: u64 = version.parse().unwrap_or_default();
    metadata.resource_version = Some((version + 1).to_string());
}
