//! Where a Machine is not yet as its set makes new ones.

use crds::ObjectExt;
use crds::{ClusterDeployment, Machine, names};

use super::members::ordinal_of;
use crate::machine_request::is_requested;
use crate::{claims, naming};

/// The fields of the spec that its set has yet to give to this Machine; none: it has them. Machines that a platform
/// made have those that the platform gave them.
pub fn template_difference(deployment: &ClusterDeployment, machine: &Machine) -> Option<Vec<String>> {
    let set = claims::set_of(machine).unwrap_or_default();
    let (name, labels, annotations, taints) = match deployment.workers_of(set) {
        Some(set) => (format!("workers[{}]", set.name), &set.labels, &set.annotations, &set.taints),
        None if set == names::control_plane_set(deployment.name()) => {
            let set = &deployment.spec.control_plane;
            ("controlPlane".to_owned(), &set.labels, &set.annotations, &set.taints)
        }
        None => return None,
    };
    if !is_made_by_its_set(machine, set) {
        return None;
    }
    let has = &machine.spec;
    let fields = [
        ("labels", has.labels != *labels),
        ("annotations", has.annotations != *annotations),
        ("taints", has.taints != *taints),
    ];
    let differ = fields.into_iter().filter(|(_, differs)| *differs);
    let differ: Vec<String> = differ.map(|(field, _)| format!("{name}.{field}")).collect();
    (!differ.is_empty()).then_some(differ)
}

fn is_made_by_its_set(machine: &Machine, set: &str) -> bool {
    if is_requested(machine) {
        return true;
    }
    let owners = machine.metadata.owner_references.iter().flatten();
    let mut owners = owners.filter(|owner| owner.kind == "MachineSet" && owner.name == set);
    let Some((owner, ordinal)) = owners.next().zip(ordinal_of(machine)) else {
        return false;
    };
    machine.metadata.name.as_deref() == Some(&naming::machine(set, &owner.uid, ordinal))
}
