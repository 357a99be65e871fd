//! The secret files of a run that brings components to machines.

use std::collections::BTreeMap;

use crds::playbook_run::Digest;
use crds::{KarmadaDeployment, PlaybookRun};

use super::super::component::Component;
use super::super::material::Material;
use super::super::seats::Seats;
use super::estimators;
use super::order::Part;
use super::service::{files_on, secret_key};

/// The files that a run needs of its plane, by the keys that its variables name; none: one of them is not there yet, or
/// one of its Hosts carries no machine of the plane any more. A run that brings no component needs nothing.
pub fn secret_files(
    object: &KarmadaDeployment,
    material: &Material,
    seats: &Seats,
    run: &PlaybookRun,
) -> Option<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    // The same on all machines.
    if run.spec.parts().any(|part| part.part == Part::Estimators.name()) {
        for (member, given) in &material.estimators {
            let files = given.files.0.iter();
            found.extend(files.map(|(name, content)| (estimators::secret_key(member, name), content.clone())));
        }
    }
    let services = Component::ALL.into_iter().filter(|component| *component != Component::Etcd);
    for component in services {
        let of_component = run.spec.parts().filter(|part| part.part == component.suffix());
        // What is taken off a machine is given nothing.
        let brought = of_component.flat_map(|part| &part.digests).filter(|(_, digest)| digest.0 != Digest::ABSENT);
        for (host, _) in brought {
            let seat = seats.control_planes.iter().find(|seat| seat.host == *host)?;
            for file in files_on(object, material, seat, component)? {
                found.insert(secret_key(host, component, &file.flat_name()), file.into_content());
            }
        }
    }
    Some(found)
}
