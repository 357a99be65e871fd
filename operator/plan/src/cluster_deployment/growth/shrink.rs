//! Shrink: going down to one etcd member leaves none to lose, and waits for a person's word.

use crds::names::{control_plane_set, etcd_set};
use crds::step::Role;

use crate::approval::{self, What};
use crate::cluster_deployment::scene::Scene;

/// A count that is kept although fewer are wanted.
pub(in crate::cluster_deployment) struct Held {
    /// The count kept.
    pub replicas: i32,
    /// Why, and what a person can do.
    pub message: String,
}

/// Whether the count of the machines that carry etcd's members is kept for now.
pub(in crate::cluster_deployment) fn held(scene: &Scene<'_>, role: Role) -> Option<Held> {
    scene.installed.as_ref()?;
    if scene.council().etcd_role() != Some(role) {
        return None;
    }
    let spec = &scene.deployment.spec;
    let (field, wanted, set) = match role {
        Role::Etcd => ("spec.etcd.replicas", spec.etcd.replicas?, etcd_set(&scene.name)),
        Role::ControlPlane | Role::Worker => (
            "spec.controlPlane.replicas",
            spec.control_plane.replicas,
            control_plane_set(&scene.name),
        ),
    };
    let replicas = scene.set(&set)?.spec.replicas;
    let metadata = &scene.deployment.metadata;
    let value = approval::value(What::Shrink, metadata, &[field, "1"]);
    if wanted != 1 || replicas <= 1 || approval::is_given(metadata, &value) {
        return None;
    }
    let message = format!(
        "{field} is 1: with one member, etcd and the cluster are lost with that machine; {replicas} stay until you say so: {}",
        scene.approve(&value)
    );
    Some(Held { replicas, message })
}
