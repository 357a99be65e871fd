//! Approval: the value that a person is asked for, and the one that was given.

use crds::conditions;
use crds::names::{annotation, condition};

use super::LOST;
use crate::cluster_deployment::scene::Scene;

/// The value of `approve` that the status asks for: one that was there before says nothing of this loss.
pub(super) fn offered(scene: &Scene<'_>) -> Option<String> {
    let status = scene.deployment.status.as_ref()?;
    let ready = conditions::find(&status.conditions, condition::ETCD_READY)?;
    let (_, value) = ready.message.rsplit_once(&format!("{}=", annotation::APPROVE))?;
    let current = value.split('.').next() == Some(scene.generation().to_string().as_str());
    (ready.reason == LOST && current).then(|| value.to_owned())
}

pub(super) fn given(scene: &Scene<'_>) -> Option<String> {
    let annotations = scene.deployment.metadata.annotations.as_ref()?;
    annotations.get(annotation::APPROVE).cloned()
}
