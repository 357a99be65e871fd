//! A chart as one cluster gets it: with the values that are meant for this cluster.

use std::collections::BTreeMap;

use crds::addon::{ChartOverride, HealthCheck};
use crds::chart::ChartPlace;
use serde_json::{Map, Value};

use crate::addon::chart::{FrozenChart, merge, texts};
use crate::addon::revision::Revision;
use crate::naming::short_hash;

/// What is installed on a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedChart {
    /// The revision that it was made from.
    pub revision: String,
    /// Its version.
    pub version: Option<String>,
    /// Digest of the chart, its values and the release.
    pub digest: String,
    /// Where the chart is.
    pub place: ChartPlace,
    /// Name of the release.
    pub release: String,
    /// Its namespace.
    pub namespace: String,
    /// The values.
    pub values: Map<String, Value>,
    /// Texts that no log may have.
    pub masked: Vec<String>,
    /// When its objects are healthy, beside what they say themselves.
    pub health_checks: Vec<HealthCheck>,
}

impl PreparedChart {
    /// The description that the release gets when this is installed: nobody else's is the same.
    pub fn description(&self, addon: &str) -> String {
        format!("{}{}", of_addon(addon), self.digest)
    }

    /// The chart in words: `chart agent 1.2.0`.
    pub fn name(&self) -> String {
        let place = &self.place;
        let oci = place.oci.as_ref().and_then(|oci| oci.rsplit('/').next());
        format!("chart {} {}", place.name.as_deref().or(oci).unwrap_or_default(), place.version)
    }
}

/// How descriptions of releases of this Addon begin.
pub(super) fn of_addon(addon: &str) -> String {
    format!("clusterwright: Addon {addon}, digest ")
}

/// The chart of a revision with the values of this cluster.
pub fn prepare_chart(
    addon: &str,
    name: &str,
    revision: &Revision,
    frozen: &FrozenChart,
    (cluster, labels): (&str, &BTreeMap<String, String>),
) -> PreparedChart {
    let chart = &frozen.chart;
    let mut values = Map::new();
    for file in &frozen.files {
        merge(&mut values, &file.values);
    }
    merge(&mut values, &chart.values);
    for one in chart.overrides.iter().filter(|one| is_for(one, cluster, labels)) {
        merge(&mut values, &one.values);
    }
    let archive = frozen.archive.as_ref();
    let place = ChartPlace {
        oci: chart.oci.clone(),
        repository: chart.repository.clone(),
        name: chart.name.clone(),
        archive: archive.map(|archive| archive.url.clone()),
        version: chart.version.clone(),
        digest: archive.map(|archive| format!("sha256:{}", archive.sha256)).or(chart.digest.clone()),
        plain_http: chart.plain_http,
    };
    let release = chart.release_name.clone().unwrap_or_else(|| addon.to_owned());
    // The same archive at another place is the same chart.
    let known = ChartPlace { archive: archive.map(|_| String::new()), ..place.clone() };
    let parts = [serde_json::to_string(&known), serde_json::to_string(&values)].map(Result::unwrap_or_default);
    let digest = short_hash(&[&parts[0], &parts[1], &release, &chart.namespace], 16);
    let secret = frozen.files.iter().filter(|file| file.is_secret);
    PreparedChart {
        revision: name.to_owned(),
        version: revision.version.clone(),
        digest,
        place,
        release,
        namespace: chart.namespace.clone(),
        values,
        masked: secret.flat_map(|file| texts(&file.values)).collect(),
        health_checks: revision.health_checks.clone(),
    }
}

fn is_for(one: &ChartOverride, cluster: &str, labels: &BTreeMap<String, String>) -> bool {
    match &one.cluster_selector {
        Some(selector) => selector.selects(Some(labels)),
        None => one.clusters.iter().any(|name| name == cluster),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::{PreparedChart, prepare_chart};
    use crate::addon::chart::{FrozenChart, ValuesSeen};
    use crate::addon::revision::Revision;

    fn prepared(more: Value, cluster: &str, secret: &str) -> PreparedChart {
        let mut chart = json!({"oci": "oci://r/charts/agent", "version": "1.2.0"});
        chart.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        let seen = ValuesSeen {
            kind: "Secret",
            name: "s".into(),
            key: "k".into(),
            found: Some(Some(secret.as_bytes().to_vec())),
        };
        let frozen = FrozenChart::new(&serde_json::from_value(chart).unwrap(), vec![seen], None).unwrap();
        let revision = Revision {
            version: Some("1.2.0".into()),
            template: false,
            files: Vec::new(),
            chart: Some(frozen.clone()),
            health_checks: Vec::new(),
        };
        let labels = BTreeMap::from([("stage".to_owned(), "test".to_owned())]);
        prepare_chart("agent", "r", &revision, &frozen, (cluster, &labels))
    }

    #[test]
    fn values_come_from_keys_then_from_the_spec_then_from_what_is_meant_for_the_cluster() {
        let spec = json!({
            "values": {"b": 2, "c": 2, "d": 2},
            "overrides": [
                {"clusters": ["paris"], "values": {"c": 3}},
                {"clusters": ["rome"], "values": {"c": 9}},
                {"clusterSelector": {"matchLabels": {"stage": "test"}}, "values": {"d": 4}},
            ],
        });
        let made = prepared(spec.clone(), "paris", "{a: hunter2hunter2, b: 1}");
        assert_eq!(Value::Object(made.values.clone()), json!({"a": "hunter2hunter2", "b": 2, "c": 3, "d": 4}));
        assert_eq!(made.masked, ["1", "hunter2hunter2"]);
        assert_eq!((made.release.as_str(), made.name().as_str()), ("agent", "chart agent 1.2.0"));
        assert_eq!(prepared(spec, "rome", "{}").values["c"], 9);
    }

    #[test]
    fn only_what_is_installed_makes_another_digest() {
        let digest = |more: Value, cluster: &str| prepared(more, cluster, "{}").digest;
        let first = digest(json!({}), "a");
        assert_eq!(digest(json!({"timeoutSeconds": 20, "credentialsRef": {"name": "x"}}), "a"), first);
        assert_eq!(digest(json!({"overrides": [{"clusters": ["b"], "values": {"x": 1}}]}), "a"), first);
        assert_ne!(digest(json!({"overrides": [{"clusters": ["b"], "values": {"x": 1}}]}), "b"), first);
        for more in [json!({"version": "1.2.1"}), json!({"values": {"x": 1}}), json!({"namespace": "n"})] {
            assert_ne!(digest(more.clone(), "a"), first, "{more}");
        }
    }
}
