//! What the controller of MachineSets writes.

use crds::ObjectExt;
use crds::names::annotation;

use super::super::world::World;
use super::annotate;
use crate::machine_set::Action;

impl World {
    pub(super) fn apply_to_set(&mut self, action: Action) {
        match action {
            // What it counts is nobody's to decide by.
            Action::CreateHostPool(_) => {}
            Action::CreateMachine(machine) => self.create_machine(*machine),
            Action::Adopt(machine) => {
                if let Some(there) = self.machine(machine.name()) {
                    there.metadata = machine.metadata;
                }
            }
            Action::QuarantineHost { machine, quarantine, .. } => {
                if let Some(machine) = self.machine(machine.name()) {
                    annotate(&mut machine.metadata, annotation::QUARANTINE, quarantine);
                }
            }
            Action::DeleteMachine(machine) => {
                self.check_removal(&machine);
                self.mark_deleted(&machine);
            }
            Action::SetNodeMetadata { machine, labels, annotations, taints } => {
                if let Some(machine) = self.machine(machine.name()) {
                    let spec = &mut machine.spec;
                    (spec.labels, spec.annotations, spec.taints) = (labels, annotations, taints);
                    machine.metadata.generation = machine.metadata.generation.map(|generation| generation + 1);
                }
            }
            Action::SetVersion { machine, version } => {
                if let Some(machine) = self.machine(machine.name()) {
                    machine.spec.kubernetes_version = Some(version);
                }
            }
        }
    }
}
