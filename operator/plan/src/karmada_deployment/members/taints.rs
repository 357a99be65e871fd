//! Taints of a member's Cluster. Karmada writes its own into the same list, which is one field to the API: so ours are
//! put beside what is there, and an annotation remembers which they are.

use std::collections::BTreeSet;

use crds::names::annotation;
use serde_json::{Value, json};

use super::action::Act;
use super::cluster::patch_of;
use super::target::Target;

/// The change that brings them to what is wanted; `None`: they are.
pub(super) fn patch(target: &Target, cluster: &Value) -> Option<Act> {
    let wanted: Vec<Value> = target.named.iter().flat_map(|named| &named.taints).map(|taint| json!(taint)).collect();
    let memory = cluster["metadata"]["annotations"][annotation::TAINTS_FROM_MEMBER].as_str().unwrap_or_default();
    let remembered: BTreeSet<String> = memory.split(',').filter(|key| !key.is_empty()).map(str::to_owned).collect();
    let keys: BTreeSet<String> = wanted.iter().map(key).collect();
    let there = cluster["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let is_there = |taint: &Value| {
        let same = |live: &&Value| key(live) == key(taint) && live["value"] == taint["value"];
        there.iter().any(|live| same(&live))
    };
    let has_left = |live: &Value| remembered.contains(&key(live)) && !keys.contains(&key(live));
    if wanted.iter().all(is_there) && !there.iter().any(has_left) && remembered == keys {
        return None;
    }
    let others = there.iter().filter(|live| !remembered.contains(&key(live)) && !keys.contains(&key(live)));
    let taints: Vec<Value> = others.cloned().chain(wanted.iter().cloned()).collect();
    let memory: Vec<String> = keys.into_iter().collect();
    let patch = json!({
        "metadata": { "annotations": { (annotation::TAINTS_FROM_MEMBER): memory.join(",") } },
        "spec": { "taints": taints },
    });
    Some(patch_of(cluster, patch))
}

fn key(taint: &Value) -> String {
    let text = |field: &str| taint[field].as_str().unwrap_or_default();
    format!("{}:{}", text("key"), text("effect"))
}
