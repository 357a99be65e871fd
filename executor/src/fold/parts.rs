//! What a machine says of the services of its Karmada control plane, and of those that a step has brought to it, cut to
//! what the schema takes.

use std::collections::BTreeMap;

use crds::playbook_run::{Digest, PartSeen};
use serde_json::Value;

use super::text::field;
use crate::sanitize::clean;

/// Services that are reported.
const LIMIT: usize = 16;
/// Members whose estimators are reported.
const MEMBERS_LIMIT: usize = 256;

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

/// Digests of those that work, by their names.
pub(super) fn brought(report: &Value) -> BTreeMap<String, Digest> {
    let told = report.get("parts").and_then(Value::as_object);
    let legal = |name: &String| {
        let digest = told?.get(name)?.as_str().map(|digest| clean(digest, 64)).filter(|digest| is_legal(digest))?;
        Some((clean(name, 63), Digest(digest))).filter(|(name, _)| !name.is_empty())
    };
    told.into_iter().flat_map(|told| told.keys()).filter_map(legal).take(LIMIT).collect()
}

/// Whether the schema takes it as a digest.
fn is_legal(digest: &str) -> bool {
    digest.starts_with(|c: char| c.is_ascii_alphanumeric())
        && digest.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-')
}

fn part(value: &Value) -> Option<PartSeen> {
    Some(PartSeen {
        name: field(value, "name", 63)?,
        digest: field(value, "digest", 64).filter(|digest| is_legal(digest)),
        healthy: value.get("healthy").and_then(Value::as_bool).unwrap_or_default(),
        message: field(value, "message", 256),
        members: members(value),
    })
}

/// Why estimators do not work, by the names of their members.
fn members(value: &Value) -> BTreeMap<String, String> {
    let told = value.get("members").and_then(Value::as_object).into_iter().flatten();
    let told = told.filter_map(|(member, why)| Some((clean(member, 63), clean(why.as_str()?, 128))));
    told.filter(|(member, _)| !member.is_empty()).take(MEMBERS_LIMIT).collect()
}
