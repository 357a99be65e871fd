//! The secret files of a run that brings a component to machines.

use std::collections::BTreeMap;

use crds::playbook_run::Digest;
use crds::{KarmadaDeployment, PlaybookRun};

use super::super::component::Component;
use super::super::material::Material;
use super::super::seats::Seats;
use super::service::{files_on, secret_key};

/// The files that a run needs of its plane, by the keys that its variables name; none: one of them is not there yet, or
/// one of its Hosts carries no machine of the plane any more. A run that brings no component needs nothing.
pub fn secret_files(
    object: &KarmadaDeployment,
    material: &Material,
    seats: &Seats,
    run: &PlaybookRun,
) -> Option<BTreeMap<String, Vec<u8>>> {
    let Some(karmada) = &run.spec.karmada else { return Some(BTreeMap::new()) };
    let Some(component) = Component::ALL.into_iter().find(|component| component.suffix() == karmada.part) else {
        return Some(BTreeMap::new());
    };
    let mut found = BTreeMap::new();
    for host in karmada.digests.keys() {
        // What is taken off a machine is given nothing.
        if karmada.digests[host].0 == Digest::ABSENT || component == Component::Etcd {
            continue;
        }
        let seat = seats.control_planes.iter().find(|seat| seat.host == *host)?;
        for file in files_on(object, material, seat, component)? {
            found.insert(secret_key(host, component, &file.flat_name()), file.into_content());
        }
    }
    Some(found)
}
