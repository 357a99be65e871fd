//! What platforms and the controller of MachineRequests write.

use std::collections::BTreeMap;

use crds::names::{annotation, finalizer, label};
use crds::{Machine, MachineRequest, ObjectExt};

use super::super::world::World;
use crate::machine_request::Action;

impl World {
    /// A platform requests machines for a set of workers, by the rest of the spec.
    pub fn request_machines(&mut self, name: &str, cluster: &str, set: &str, spec: &str) {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: MachineRequest, metadata: {{name: {name}}}, spec: {{clusterName: {cluster}, set: {set}, {spec}}}}}"
        );
        let mut request: MachineRequest = serde_yaml::from_str(&yaml).unwrap();
        self.stamp(&mut request.metadata);
        self.requests.push(request);
    }

    /// A platform deletes a request; its finalizer holds it.
    pub fn delete_request(&mut self, name: &str) {
        let now = self.time();
        if let Some(request) = self.request_named(name) {
            request.metadata.deletion_timestamp.get_or_insert(now);
        }
        self.requests.retain(|request| !request.is_deleting() || request.metadata.finalizers.is_some());
    }

    pub fn request_named(&mut self, name: &str) -> Option<&mut MachineRequest> {
        self.requests.iter_mut().find(|request| request.name() == name)
    }

    pub(super) fn apply_to_request(&mut self, name: &str, action: Action) {
        match action {
            Action::AddFinalizer => {
                if let Some(request) = self.request_named(name) {
                    request.metadata.finalizers = Some(vec![finalizer::MACHINE_REQUEST.into()]);
                }
            }
            // What it counts is nobody's to decide by.
            Action::CreateHostPool(_) => {}
            Action::CreateMachine(machine) => self.create_machine(*machine),
            Action::GiveBack(machine) => self.mark_deleted(&machine),
            Action::LeaveToSet(machine) => {
                if let Some(machine) = self.machine(machine.name()) {
                    take_off(machine);
                }
            }
            Action::RemoveFinalizer => self.requests.retain(|request| request.name() != name),
        }
    }
}

fn take_off(machine: &mut Machine) {
    let labels: &mut BTreeMap<String, String> = machine.metadata.labels.get_or_insert_default();
    labels.remove(label::MACHINE_REQUEST);
    let annotations = machine.metadata.annotations.get_or_insert_default();
    for key in [annotation::MACHINE_REQUEST_UID, annotation::REQUEST_ID, annotation::ORDINAL] {
        annotations.remove(key);
    }
}
