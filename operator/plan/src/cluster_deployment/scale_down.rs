//! Scaling down to one etcd member leaves none to lose, and waits for an approval.

use crds::names::{control_plane_set, etcd_set};
use crds::step::Role;

use super::state::ClusterState;
use crate::approval::{self, What};

/// A count that is kept although fewer are wanted.
pub(super) struct Held {
    /// The count kept.
    pub replicas: i32,
    /// Why, and what a person can do.
    pub message: String,
}

/// Whether the count of the machines that carry etcd's members is kept for now.
pub(super) fn held(state: &ClusterState<'_>, role: Role) -> Option<Held> {
    state.installed.as_ref()?;
    if state.membership().etcd_role() != Some(role) {
        return None;
    }
    let spec = &state.deployment.spec;
    let (field, wanted, set) = match role {
        Role::Etcd => ("spec.etcd.replicas", spec.etcd.replicas?, etcd_set(&state.name)),
        Role::ControlPlane | Role::Worker => {
            ("spec.controlPlane.replicas", spec.control_plane.replicas, control_plane_set(&state.name))
        }
    };
    let replicas = state.set(&set)?.spec.replicas;
    let metadata = &state.deployment.metadata;
    let value = approval::value(What::Shrink, metadata, &[field, "1"]);
    if wanted != 1 || replicas <= 1 || approval::is_given(metadata, &value) {
        return None;
    }
    let message = format!(
        "{field} is 1: with one member, etcd and the cluster are lost with that machine; {replicas} stay until you say so: {}",
        state.approve(&value)
    );
    Some(Held { replicas, message })
}
