//! Whose a Machine is: a request's, by the annotation with its UID. No owner reference: what becomes of the Machines is
//! said by `spec.onDelete`, and not by how the request is deleted.

use crds::machine_request::{RequestedMachine, RequestedMachineState};
use crds::names::{annotation, condition, label};
use crds::{Conditions, Machine, MachineRequest, ObjectExt};

use super::observed::Observed;
use crate::lifecycle::is_provisioned;

/// Whether the Machine was made for a MachineRequest: it is in its set beside the set's own.
pub fn is_requested(machine: &Machine) -> bool {
    machine.annotation(annotation::MACHINE_REQUEST_UID).is_some()
}

/// Name of the MachineRequest that the Machine was made for.
pub fn request_of(machine: &Machine) -> Option<&str> {
    let labels = machine.metadata.labels.as_ref().filter(|_| is_requested(machine))?;
    labels.get(label::MACHINE_REQUEST).map(String::as_str)
}

/// The Machines of a request.
pub(super) struct Members<'a> {
    request: &'a MachineRequest,
    /// Those that are there and stay.
    pub live: Vec<&'a Machine>,
    /// Those that are being deleted.
    pub leaving: Vec<&'a Machine>,
}

impl<'a> Members<'a> {
    pub fn new(observed: &Observed<'a>) -> Self {
        let request = observed.request;
        let is_ours = |machine: &&Machine| machine.annotation(annotation::MACHINE_REQUEST_UID) == Some(request.uid());
        let ours = observed.machines.iter().copied().filter(is_ours);
        let (leaving, live) = ours.partition(|machine| machine.is_deleting());
        Self { request, live, leaving }
    }

    /// What the status remembers of a Machine.
    pub fn record(&self, name: &str) -> Option<&'a RequestedMachine> {
        self.request.status.as_ref()?.machines.iter().find(|record| record.name == name)
    }

    /// Whether the Machine has been Ready: from then on it counts, whatever its Node does. One of which a status that
    /// was lost says nothing is not taken away for that.
    pub fn is_delivered(&self, machine: &Machine) -> bool {
        match self.record(machine.name()) {
            Some(record) if record.state == RequestedMachineState::GivenBack => false,
            Some(record) => record.delivered_at.is_some() || is_ready(machine),
            None => is_provisioned(machine) || is_ready(machine),
        }
    }

    pub fn delivered(&self) -> impl Iterator<Item = &'a Machine> + '_ {
        self.live.iter().copied().filter(|machine| self.is_delivered(machine))
    }

    pub fn undelivered(&self) -> impl Iterator<Item = &'a Machine> + '_ {
        self.live.iter().copied().filter(|machine| !self.is_delivered(machine))
    }
}

pub(super) fn is_ready(machine: &Machine) -> bool {
    machine.is_true(condition::READY) && !machine.is_deleting()
}
