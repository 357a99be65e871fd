//! A selector in words.

use crds::placement::{HostSelector, LabelOperator, LabelRequirement};

/// `size=large, rack in (r1, r2), minCPUs 8`.
pub(super) fn words(selector: &HostSelector) -> String {
    let labels = selector.match_labels.iter().map(|(key, value)| format!("{key}={}", value.0));
    let expressions = selector.match_expressions.iter().map(requirement);
    let cpus = selector.min_cpus.map(|least| format!("minCPUs {least}"));
    let memory = selector.min_memory_mib.map(|least| format!("minMemoryMiB {least}"));
    let words: Vec<String> = labels.chain(expressions).chain(cpus).chain(memory).collect();
    if words.is_empty() { "everything".into() } else { words.join(", ") }
}

fn requirement(wanted: &LabelRequirement) -> String {
    let key = &wanted.key;
    let values: Vec<&str> = wanted.values.iter().map(|value| value.0.as_str()).collect();
    let values = values.join(", ");
    match wanted.operator {
        LabelOperator::In => format!("{key} in ({values})"),
        LabelOperator::NotIn => format!("{key} notin ({values})"),
        LabelOperator::Exists => key.clone(),
        LabelOperator::DoesNotExist => format!("!{key}"),
    }
}
