//! Whose a Machine is: the set's own, or one that carries its label and may become its own.

use std::collections::{BTreeMap, BTreeSet};

use crds::ObjectExt;
use crds::machine_set::MachineSetMode;
use crds::names::{annotation, finalizer, label};
use crds::references::controller_ref;
use crds::{Machine, MachineSet};

use super::action::Action;
use super::observed::Observed;
use crate::claims;
use crate::former;
use crate::machine_request::is_requested;

/// The Machines of a set.
pub(super) struct Members<'a> {
    /// Those that it counts: its own, or a platform's where it makes none.
    pub own: Vec<&'a Machine>,
    /// Nobody's, with its label: it takes them over when it lacks one, before it makes one.
    pub offered: Vec<&'a Machine>,
    /// Those of MachineRequests for it that stay: they are beside its count.
    pub requested: Vec<&'a Machine>,
}

impl<'a> Members<'a> {
    pub fn new(observed: &Observed<'a>) -> Self {
        let set = observed.set;
        let ours =
            |machine: &&Machine| machine.spec.former() == set.spec.former() && machine.spec.role == set.spec.role;
        let machines = observed.machines.iter().copied().filter(ours);
        let manual = set.spec.mode == MachineSetMode::Manual;
        let (mut own, mut offered, mut requested) = (Vec::new(), Vec::new(), Vec::new());
        for machine in machines {
            match controller_of(machine) {
                _ if is_requested(machine) && is_labelled(machine, set) && is_live(machine) => requested.push(machine),
                _ if is_requested(machine) => {}
                Some(owner) if Some(owner) == set.metadata.uid.as_deref() => own.push(machine),
                _ if manual && is_labelled(machine, set) => own.push(machine),
                None if is_labelled(machine, set) && is_live(machine) && !is_former(observed, machine) => {
                    offered.push(machine);
                }
                _ => {}
            }
        }
        offered.sort_by_key(|machine| (machine.metadata.creation_timestamp.clone(), machine.metadata.name.clone()));
        Self { own, offered, requested }
    }

    pub fn live(&self) -> Vec<&'a Machine> {
        let own = self.own.iter().copied();
        own.filter(|machine| is_live(machine)).collect()
    }
}

/// Whether it was made for a former cluster of the same name: it is nobody's, and not this set's either.
fn is_former(observed: &Observed<'_>, machine: &Machine) -> bool {
    observed.formed.is_some_and(|cluster| former::is_former(machine, cluster, &[observed.set]))
}

fn controller_of(machine: &Machine) -> Option<&str> {
    let owners = machine.metadata.owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    controllers.next().map(|owner| owner.uid.as_str())
}

fn is_labelled(machine: &Machine, set: &MachineSet) -> bool {
    claims::set_of(machine) == set.metadata.name.as_deref()
}

/// What makes a Machine the set's own, and keeps it so: somebody may have taken its labels off.
pub(super) fn adopt(observed: &Observed<'_>, machine: &Machine, ordinals: &mut BTreeSet<u32>) -> Option<Action> {
    let set = observed.set;
    let mut metadata = machine.metadata.clone();
    let labels = metadata.labels.get_or_insert_default();
    labels.extend(labels_of(set));
    let finalizers = metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|there| there == finalizer::MACHINE) {
        finalizers.push(finalizer::MACHINE.into());
    }
    let owners = metadata.owner_references.get_or_insert_default();
    if controller_of(machine).is_none() {
        owners.extend(controller_ref(set));
    }
    if ordinal_of(machine).is_none() {
        let free = (0..).find(|ordinal| ordinals.insert(*ordinal)).unwrap_or_default();
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::ORDINAL.into(), free.to_string());
    }
    (metadata != machine.metadata).then(|| {
        let mut adopted = machine.clone();
        adopted.metadata = metadata;
        Action::Adopt(Box::new(adopted))
    })
}

/// The labels of the Machines of a set.
pub(crate) fn labels_of(set: &MachineSet) -> BTreeMap<String, String> {
    BTreeMap::from([
        (label::CLUSTER.into(), set.spec.cluster_name.clone()),
        (label::MACHINE_SET.into(), set.name().to_owned()),
        (label::ROLE.into(), set.spec.role.name().into()),
    ])
}

pub(super) fn is_live(machine: &Machine) -> bool {
    !machine.is_deleting()
}

/// The ordinal of a Machine in its set.
pub fn ordinal_of(machine: &Machine) -> Option<u32> {
    machine.annotation(annotation::ORDINAL)?.parse().ok()
}
