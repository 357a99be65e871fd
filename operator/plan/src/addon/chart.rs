//! The chart of an Addon as a revision has it: what it is and with which values, but not how it is fetched.

use crds::Reason;
use crds::addon::{BundlePlace, Chart};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::problem::Problem;

/// What is frozen of a chart.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FrozenChart {
    /// The chart, without `valuesFrom`, and without what the Addon itself says at each attempt: login, authorities and
    /// time.
    pub chart: Chart,
    /// Its archive, where it comes from a bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<ChartArchive>,
    /// The values of `valuesFrom`, in its order.
    pub files: Vec<ValuesFile>,
}

/// The archive of a chart in a bundle.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ChartArchive {
    /// Its URL.
    pub url: String,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: String,
}

/// Values of a key.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ValuesFile {
    /// The values.
    pub values: Map<String, Value>,
    /// Whether they stood in a Secret.
    pub is_secret: bool,
}

/// What was read of one entry of `source.chart.valuesFrom`.
pub struct ValuesSeen {
    /// `ConfigMap` or `Secret`.
    pub kind: &'static str,
    /// Name of the object.
    pub name: String,
    /// Its key.
    pub key: String,
    /// What stands there: `None`: there is no such object; without a text: it has no such key.
    pub found: Option<Option<Vec<u8>>>,
}

impl FrozenChart {
    /// The chart that is wanted, with what its references lead to; or why it cannot be installed.
    pub fn new(chart: &Chart, seen: Vec<ValuesSeen>, archive: Option<ChartArchive>) -> Result<Self, Problem> {
        let files = seen.into_iter().map(file).collect::<Result<Vec<_>, _>>()?;
        if let (Some(archive), Some(wanted)) = (&archive, &chart.digest)
            && format!("sha256:{}", archive.sha256) != *wanted
        {
            let message = format!(
                "spec.source.chart.digest is {wanted}, and the bundle has {} with sha256:{}: correct it, or find out who has changed the bundle",
                archive.url, archive.sha256
            );
            return Err(Problem { reason: Reason::ChartDigestMismatch, message });
        }
        // Who vouches for the bundle is asked when it is read.
        let bundle = chart.bundle.as_ref().map(|bundle| BundlePlace {
            url: bundle.url.clone(),
            index_sha256: None,
            signed_by: None,
        });
        let chart = Chart {
            values_from: Vec::new(),
            credentials_ref: None,
            ca_ref: None,
            timeout_seconds: 0,
            bundle,
            ..chart.clone()
        };
        Ok(Self { chart, archive, files })
    }

    /// All that makes it another one, as a text.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn file(seen: ValuesSeen) -> Result<ValuesFile, Problem> {
    let ValuesSeen { kind, name, key, found } = seen;
    let invalid = |message: String| Problem { reason: Reason::ValuesInvalid, message };
    let Some(found) = found else {
        let reason = if kind == "Secret" { Reason::SecretNotFound } else { Reason::ConfigMapNotFound };
        let message = format!(
            "{kind} {name}, which spec.source.chart.valuesFrom names, is not there: create it, or correct the name"
        );
        return Err(Problem { reason, message });
    };
    let Some(bytes) = found else {
        let message = format!("{kind} {name}, which spec.source.chart.valuesFrom names, has no key {key}: add it");
        return Err(invalid(message));
    };
    // What stands in a Secret is in no message.
    let is_secret = kind == "Secret";
    let cause = |error: String| if is_secret { String::new() } else { format!(": {error}") };
    let no_map = |why: String| invalid(format!("{kind} {name}: {key}: it is no map in YAML{}", cause(why)));
    match serde_yaml::from_slice::<Value>(&bytes) {
        Ok(Value::Object(values)) => Ok(ValuesFile { values, is_secret }),
        Ok(Value::Null) => Ok(ValuesFile { values: Map::new(), is_secret }),
        Ok(_) => Err(no_map("it is a list or a single value".into())),
        Err(error) => Err(no_map(error.to_string())),
    }
}

/// Lays values over others: maps are merged, all else is replaced.
pub fn merge(into: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, value) in over {
        match (into.get_mut(key), value) {
            (Some(Value::Object(into)), Value::Object(over)) => merge(into, over),
            _ => drop(into.insert(key.clone(), value.clone())),
        }
    }
}

/// The texts among values.
pub fn texts(values: &Map<String, Value>) -> Vec<String> {
    let mut texts = Vec::new();
    let mut left: Vec<&Value> = values.values().collect();
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) => texts.push(text.clone()),
            Value::Number(number) => texts.push(number.to_string()),
            Value::Array(items) => left.extend(items),
            Value::Object(map) => left.extend(map.values()),
            Value::Null | Value::Bool(_) => {}
        }
    }
    texts.sort_unstable();
    texts
}

#[cfg(test)]
mod tests {
    use crds::Reason;
    use serde_json::{Map, Value, json};

    use super::{ChartArchive, FrozenChart, ValuesSeen, merge, texts};

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn maps_are_merged_and_all_else_is_replaced() {
        let mut into = map(json!({"a": {"b": 1, "c": 2}, "d": [1, 2], "e": 1}));
        merge(&mut into, &map(json!({"a": {"c": 3, "f": 4}, "d": [3], "e": null, "g": {"h": 1}})));
        assert_eq!(Value::Object(into), json!({"a": {"b": 1, "c": 3, "f": 4}, "d": [3], "e": null, "g": {"h": 1}}));
    }

    #[test]
    fn texts_are_found_wherever_they_stand() {
        assert_eq!(texts(&map(json!({"a": {"b": ["x", {"c": "y"}]}, "d": 12, "e": true}))), ["12", "x", "y"]);
    }

    #[test]
    fn values_that_are_not_there_or_no_map_are_named_and_a_secret_is_not_quoted() {
        let chart = serde_json::from_value(json!({"oci": "oci://r/c", "version": "1.0.0"})).unwrap();
        let made = |kind: &'static str, found: Option<Option<&str>>| {
            let found = found.map(|found| found.map(|text| text.as_bytes().to_vec()));
            let seen = ValuesSeen { kind, name: "a".into(), key: "k".into(), found };
            FrozenChart::new(&chart, vec![seen], None).map_err(|problem| (problem.reason, problem.message))
        };
        assert_eq!(made("Secret", None).unwrap_err().0, Reason::SecretNotFound);
        assert_eq!(made("ConfigMap", None).unwrap_err().0, Reason::ConfigMapNotFound);
        let (reason, message) = made("ConfigMap", Some(None)).unwrap_err();
        assert!(reason == Reason::ValuesInvalid && message.contains("has no key k"), "{message}");
        for text in ["hunter2hunter2", "hunter2: [", "- hunter2"] {
            let (reason, message) = made("Secret", Some(Some(text))).unwrap_err();
            assert!(reason == Reason::ValuesInvalid && !message.contains("hunter"), "{message}");
        }
        assert_eq!(made("ConfigMap", Some(Some("a: {b: 1}"))).unwrap().files[0].values, map(json!({"a": {"b": 1}})));
        assert_eq!(made("ConfigMap", Some(Some("# nothing"))).unwrap().files[0].values, Map::new());
    }

    #[test]
    fn a_chart_of_a_bundle_is_known_by_its_archive_and_not_by_who_vouches_for_it() {
        let made = |index: &str, digest: Value, sha256: &str| {
            let bundle = json!({"url": "https://b", "indexSHA256": index});
            let chart = json!({"bundle": bundle, "name": "a", "version": "1.0.0", "digest": digest});
            let archive = ChartArchive { url: "https://b/a.tgz".into(), sha256: sha256.into() };
            FrozenChart::new(&serde_json::from_value(chart).unwrap(), Vec::new(), Some(archive))
        };
        let first = made("x", Value::Null, "ab").unwrap().text();
        assert_eq!(made("y", Value::Null, "ab").unwrap().text(), first);
        assert_ne!(made("x", Value::Null, "cd").unwrap().text(), first);
        assert!(made("x", json!("sha256:ab"), "ab").is_ok());
        let problem = made("x", json!("sha256:cd"), "ab").unwrap_err();
        assert_eq!(problem.reason, Reason::ChartDigestMismatch);
    }
}
