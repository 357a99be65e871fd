//! What the code itself says of an edit of a field, and what the schema's rules say.

use std::collections::BTreeSet;

use crds::ClusterDeployment;
use crds::step::Step;
use serde_json::{Value, json};

use super::effect::Effect;
use super::leaves::Leaf;

/// The cluster that is asked about.
pub const CLUSTER: &str = "a";
/// When all of it was made.
pub const AT: &str = "2026-01-01T00:00:00Z";

/// What is known of the edits of a field.
#[derive(Default)]
pub struct Known {
    /// None: no code says it.
    pub effect: Option<Effect>,
    /// What brings it to machines.
    pub steps: BTreeSet<Step>,
    /// What there is to say beside that.
    pub remark: String,
}

/// Whether a leaf is, or lies below, this field.
pub fn is_below(leaf: &Leaf, field: &str) -> bool {
    let path = leaf.to_string();
    let rest = path.strip_prefix(field);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with("[]"))
}

/// Why a rule of the schema, which compares an object with what it was, lets no edit of the field pass.
pub fn refused(schema: &Value, leaf: &Leaf) -> Option<String> {
    let rules = schema["x-kubernetes-validations"].as_array()?;
    rules.iter().find_map(|rule| {
        let (rule, message) = (rule["rule"].as_str()?, rule["message"].as_str()?);
        let (_, why) = message.split_once("Forbidden: ")?;
        let mut compared = rule.split("oldSelf.").skip(1).map(|rest| {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '.'));
            rest.split_at(end.unwrap_or(rest.len())).0
        });
        compared.any(|field| is_below(leaf, field)).then(|| why.to_owned())
    })
}

/// A ClusterDeployment of this spec.
pub fn deployment(spec: &Value) -> serde_json::Result<ClusterDeployment> {
    serde_json::from_value(json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterDeployment",
        "metadata": {"name": CLUSTER, "namespace": "fleet"}, "spec": spec,
    }))
}
