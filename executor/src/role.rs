//! The role of a host in its cluster, by the groups of its inputs.

use crds::inputs::{Group, RunInputs};
use crds::step::{Effect, Role};

/// Whether the others cannot go on without a host of these groups. Cleaning a machine, comparing it, or looking at it,
/// needs no other.
pub fn is_critical(model: &RunInputs, groups: &[Group]) -> bool {
    !model.steps.iter().any(|step| step.spec().each_for_itself)
        && model.intent.spec().effect != Effect::Compares
        && groups.iter().any(|group| group.is_critical())
}

/// The role that these groups make.
pub fn role_of(groups: &[Group]) -> Role {
    match groups {
        groups if groups.contains(&Group::KubeControlPlane) => Role::ControlPlane,
        groups if groups.contains(&Group::KarmadaControlPlane) => Role::ControlPlane,
        groups if groups.contains(&Group::Etcd) => Role::Etcd,
        _ => Role::Worker,
    }
}
