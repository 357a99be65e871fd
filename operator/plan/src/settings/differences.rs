//! Where a machine differs from what its cluster's spec wants now.

use crds::ObjectExt;
use crds::machine::AppliedSettings;
use crds::step::Role;
use crds::{ClusterDeployment, Machine, names};

use super::{digest, etcd_endpoints};
use crate::{claims, machine_set, naming};

/// Where a machine is not as the spec wants it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// This field differs from what was applied.
    Differs(String),
    /// What was applied of this field is not known.
    Unknown(String),
}

/// The fields of the spec that differ from what a machine of the cluster was given.
pub fn differences(
    deployment: &ClusterDeployment,
    machine: &Machine,
    applied: Option<&AppliedSettings>,
) -> Vec<Difference> {
    let spec = &deployment.spec;
    let applied = applied.cloned().unwrap_or_default();
    let compare = |field: &str, applied: Option<&String>, wanted: String| match applied {
        Some(applied) => (*applied != wanted).then(|| Difference::Differs(field.to_owned())),
        None => Some(Difference::Unknown(field.to_owned())),
    };
    let mirrors = compare(
        "containerRuntime.registryMirrors",
        applied.registry_mirrors.as_ref(),
        digest(&spec.container_runtime.registry_mirrors),
    );
    let names = || compare("controlPlane.certSANs", applied.cert_sans.as_ref(), digest(&spec.control_plane.cert_sans));
    let endpoints = || compare("etcd.endpoints", applied.etcd_endpoints.as_ref(), etcd_endpoints(&spec.etcd)?);
    match machine.spec.role {
        Role::ControlPlane => mirrors.into_iter().chain(names()).chain(endpoints()).collect(),
        Role::Worker => mirrors.into_iter().chain(of_template(deployment, machine)).collect(),
        Role::Etcd => mirrors.into_iter().collect(),
    }
}

/// Labels and taints are in the Machine's own spec, and its Node is kept as that says. Machines that a platform made
/// have those that the platform gave them.
fn of_template(deployment: &ClusterDeployment, machine: &Machine) -> Vec<Difference> {
    let cluster = deployment.name();
    let set = claims::set_of(machine).unwrap_or_default();
    let mut sets = deployment.spec.workers.iter();
    let Some(workers) = sets.find(|workers| names::worker_set(cluster, &workers.name) == set) else {
        return Vec::new();
    };
    if !is_made_by_its_set(machine, set) {
        return Vec::new();
    }
    let differs = |field: &str| Difference::Differs(format!("workers[{}].{field}", workers.name));
    let labels = (machine.spec.labels != workers.labels).then(|| differs("labels"));
    let taints = (machine.spec.taints != workers.taints).then(|| differs("taints"));
    labels.into_iter().chain(taints).collect()
}

fn is_made_by_its_set(machine: &Machine, set: &str) -> bool {
    let owners = machine.metadata.owner_references.iter().flatten();
    let mut owners = owners.filter(|owner| owner.kind == "MachineSet" && owner.name == set);
    let Some((owner, ordinal)) = owners.next().zip(machine_set::ordinal_of(machine)) else {
        return false;
    };
    machine.metadata.name.as_deref() == Some(&naming::machine(set, &owner.uid, ordinal))
}
