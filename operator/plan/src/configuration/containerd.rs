//! containerd's part.

use crds::ClusterDeployment;
use serde_json::{Value, json};

use super::merge;

pub(super) fn wanted(deployment: &ClusterDeployment, _set: Option<&str>) -> Option<Value> {
    let containerd = deployment.spec.configuration.as_ref()?.containerd.as_ref()?;
    merge::unless_empty(json!(containerd))
}
