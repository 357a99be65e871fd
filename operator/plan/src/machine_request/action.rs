//! What is done about a MachineRequest.

use crds::{HostPool, Machine};

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Hold the request until its Machines are given back, or left to their set.
    AddFinalizer,
    /// Make this HostPool, once.
    CreateHostPool(Box<HostPool>),
    /// Make this Machine, once.
    CreateMachine(Box<Machine>),
    /// Delete this very Machine.
    GiveBack(Box<Machine>),
    /// Take off this Machine what makes it the request's, if nobody has written it since it was read: it is its set's.
    LeaveToSet(Box<Machine>),
    /// Let the request go.
    RemoveFinalizer,
}

impl Action {
    /// Deletes this very Machine.
    pub(super) fn give_back(machine: &Machine) -> Self {
        Self::GiveBack(Box::new(machine.clone()))
    }
}
