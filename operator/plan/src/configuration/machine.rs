//! The operating system's part.

use crds::ClusterDeployment;
use serde_json::{Value, json};

use super::merge;

pub(super) fn wanted(deployment: &ClusterDeployment, _set: Option<&str>) -> Option<Value> {
    let machine = deployment.spec.configuration.as_ref()?.machine.as_ref()?;
    merge::unless_empty(json!(machine))
}
