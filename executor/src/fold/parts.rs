//! What a machine says of the services of its Karmada control plane, cut to what the schema takes.

use crds::playbook_run::PartSeen;
use serde_json::Value;

use super::text::field;

/// Services that are reported.
const LIMIT: usize = 16;

/// Those with a name, each once.
pub(super) fn parts(report: &Value) -> Vec<PartSeen> {
    let told = report.get("parts").and_then(Value::as_array).into_iter().flatten();
    let mut found: Vec<PartSeen> = Vec::new();
    for part in told.filter_map(part) {
        if found.len() < LIMIT && found.iter().all(|there| there.name != part.name) {
            found.push(part);
        }
    }
    found
}

fn part(value: &Value) -> Option<PartSeen> {
    let is_legal = |digest: &String| digest.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
    Some(PartSeen {
        name: field(value, "name", 63)?,
        digest: field(value, "digest", 64).filter(is_legal),
        healthy: value.get("healthy").and_then(Value::as_bool).unwrap_or_default(),
        message: field(value, "message", 256),
    })
}
