//! Namespaces, on the host and in the plane.

use crds::KarmadaDeployment;
use serde_json::{Value, json};

use super::super::names::labels;

pub(in super::super) fn namespace(object: &KarmadaDeployment, name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels(object) } })
}
