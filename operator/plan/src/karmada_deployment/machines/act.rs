//! What is done about the machines of a plane.

use crds::{Host, Machine, MachineSet, PlaybookRun};
use serde_json::Value;

use crate::store::adoption::Adoption;

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Apply a MachineSet.
    ApplyMachineSet {
        /// Its name.
        name: String,
        /// What is wanted of it.
        object: Box<Value>,
    },
    /// Delete this very MachineSet; its Machines go with it.
    DeleteMachineSet(Box<MachineSet>),
    /// Delete this very Machine.
    DeleteMachine(Box<Machine>),
    /// Ask that this very Machine be forgotten although its Host cannot be cleaned.
    ForceRemoveMachine(Box<Machine>),
    /// Make this run, once.
    CreateRun(Box<PlaybookRun>),
    /// Ask this run to stop.
    CancelRun(Box<PlaybookRun>),
    /// Ask this run to hold before its next step, or no longer to.
    HoldRun {
        /// The run.
        run: Box<PlaybookRun>,
        /// Whether to hold.
        paused: bool,
    },
    /// Delete this run, which no decision needs any more, or which never begins.
    DeleteRun(Box<PlaybookRun>),
    /// Make an object say what a machine does, which the metadata cluster is older than.
    Adopt(Adoption),
    /// Record on this Host that its machine is fenced, if nobody has written the Host since it was read.
    MarkFenced(Box<Host>),
}

impl Act {
    /// Makes this run, once.
    pub(super) fn create(run: PlaybookRun) -> Self {
        Self::CreateRun(Box::new(run))
    }
}
