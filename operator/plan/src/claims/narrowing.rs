//! What two selectors select together.

use crds::placement::HostSelector;

/// Requirements of labels that a selector has at most.
const MOST_EXPRESSIONS: usize = 16;
/// Labels that a selector has at most.
const MOST_LABELS: usize = 32;

/// The selector of the Hosts that both select; `None` where neither selects any. An error says why there can be none.
pub fn narrow(one: Option<&HostSelector>, other: Option<&HostSelector>) -> Result<Option<HostSelector>, String> {
    let (one, other) = match (one, other) {
        (Some(one), Some(other)) => (one, other),
        (one, other) => return Ok(one.or(other).cloned()),
    };
    let mut both = one.clone();
    for (key, value) in &other.match_labels {
        let there = both.match_labels.insert(key.clone(), value.clone()).filter(|there| there != value);
        if let Some(there) = there {
            return Err(format!("label {key} cannot be {} and {}", there.0, value.0));
        }
    }
    let new = other.match_expressions.iter().filter(|wanted| !one.match_expressions.contains(wanted));
    both.match_expressions.extend(new.cloned());
    both.min_cpus = one.min_cpus.max(other.min_cpus);
    both.min_memory_mib = one.min_memory_mib.max(other.min_memory_mib);
    let (labels, expressions) = (both.match_labels.len(), both.match_expressions.len());
    if labels > MOST_LABELS || expressions > MOST_EXPRESSIONS {
        return Err(format!(
            "together they have {labels} matchLabels and {expressions} matchExpressions, and {MOST_LABELS} and {MOST_EXPRESSIONS} are allowed"
        ));
    }
    Ok(Some(both))
}

#[cfg(test)]
mod tests {
    use super::{HostSelector, narrow};

    fn selector(yaml: &str) -> Option<HostSelector> {
        (!yaml.is_empty()).then(|| serde_yaml::from_str(yaml).unwrap())
    }

    #[test]
    fn a_host_must_suit_both_selectors() {
        let check = |one: &str, other: &str, expected: Result<&str, &str>| {
            let both = narrow(selector(one).as_ref(), selector(other).as_ref());
            assert_eq!(both, expected.map(selector).map_err(str::to_owned), "{one} {other}");
        };
        check("", "", Ok(""));
        check("{matchLabels: {a: x}}", "", Ok("{matchLabels: {a: x}}"));
        check("", "{matchLabels: {a: x}}", Ok("{matchLabels: {a: x}}"));
        check("{matchLabels: {a: x}}", "{matchLabels: {b: y, a: x}}", Ok("{matchLabels: {a: x, b: y}}"));
        check("{matchLabels: {a: x}}", "{matchLabels: {a: y}}", Err("label a cannot be x and y"));
        check("{minCPUs: 8, minMemoryMiB: 9}", "{minCPUs: 16}", Ok("{minCPUs: 16, minMemoryMiB: 9}"));
        let (gpu, rack) = ("{key: gpu, operator: Exists}", "{key: rack, operator: In, values: [r1]}");
        check(
            &format!("{{matchExpressions: [{gpu}]}}"),
            &format!("{{matchExpressions: [{gpu}, {rack}]}}"),
            Ok(&format!("{{matchExpressions: [{gpu}, {rack}]}}")),
        );
    }

    #[test]
    fn what_both_select_is_no_longer_than_a_selector_may_be() {
        let many = |key: &str| {
            let all: Vec<String> = (0..9).map(|number| format!("{{key: {key}{number}, operator: Exists}}")).collect();
            selector(&format!("{{matchExpressions: [{}]}}", all.join(", ")))
        };
        let why = narrow(many("a").as_ref(), many("b").as_ref()).unwrap_err();
        assert!(why.contains("18 matchExpressions"), "{why}");
    }
}
