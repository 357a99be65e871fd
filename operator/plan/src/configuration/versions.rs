//! The parts that are versions of components, `spec.versions`.

use crds::ClusterDeployment;
use serde_json::{Value, json};

use crate::components::pins::Pin;

pub(super) fn wanted(deployment: &ClusterDeployment, pin: &Pin) -> Option<Value> {
    Some(json!(pin.wanted(deployment)?))
}
