//! A revision of an Addon: the content of its source as it was read, frozen, so that clusters which do not have the
//! newest one yet keep theirs.

use std::collections::BTreeMap;

use crds::addon::HealthCheck;
use crds::{AddonSpec, Reason};
use serde::{Deserialize, Serialize};

use super::chart::{ChartArchive, FrozenChart, ValuesSeen};
use super::problem::Problem;
use crate::cluster_addon::{checks, documents};
use crate::naming::short_hash;

/// What is frozen.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// `spec.version`, or the chart's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether the files are templates.
    pub template: bool,
    /// The keys of the ConfigMaps and Secrets, in the order in which they are applied.
    pub files: Vec<File>,
    /// The chart, where the source is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<FrozenChart>,
    /// `spec.healthChecks`.
    pub health_checks: Vec<HealthCheck>,
}

/// A key of a ConfigMap or a Secret.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where it stands: `ConfigMap agent: all.yaml`.
    pub place: String,
    /// Its text.
    pub text: String,
}

/// What was read of a source.
#[derive(Default)]
pub struct SourceRead {
    /// The manifests.
    pub manifests: Vec<SourceSeen>,
    /// What the chart's `valuesFrom` leads to.
    pub values: Vec<ValuesSeen>,
    /// The chart's archive, where it comes from a bundle.
    pub archive: Option<ChartArchive>,
}

/// What was read of one entry of `source.manifests.from`: its data, if the object is there.
pub struct SourceSeen {
    /// `ConfigMap`, `Secret` or `Bundle`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Its data; `None`: there is no such object.
    pub data: Option<BTreeMap<String, Vec<u8>>>,
}

impl Revision {
    /// The revision that is wanted, if it can be applied at all: of manifests that were read, or of a chart.
    pub fn new(addon: &str, spec: &AddonSpec, read: SourceRead) -> Result<Self, Problem> {
        let mut files = Vec::new();
        for SourceSeen { kind, name, data } in read.manifests {
            let Some(data) = data else {
                let reason = if kind == "Secret" { Reason::SecretNotFound } else { Reason::ConfigMapNotFound };
                let message = format!(
                    "{kind} {name}, which spec.source.manifests.from names, is not there: create it, or correct the name"
                );
                return Err(Problem { reason, message });
            };
            for (key, bytes) in data {
                let place = format!("{kind} {name}: {key}");
                let Ok(text) = String::from_utf8(bytes) else {
                    let message = format!("{place}: it is no text: take the key out, or make it YAML");
                    return Err(Problem { reason: Reason::ManifestInvalid, message });
                };
                files.push(File { place, text });
            }
        }
        let template = spec.source.manifests.as_ref().is_some_and(|manifests| manifests.template);
        let health_checks = spec.health_checks.clone();
        let chart =
            spec.source.chart.as_ref().map(|chart| FrozenChart::new(chart, read.values, read.archive)).transpose()?;
        let revision = Self { version: spec.shown_version().cloned(), template, files, chart, health_checks };
        revision.check(addon)?;
        Ok(revision)
    }

    /// What can be said of it without a cluster.
    fn check(&self, addon: &str) -> Result<(), Problem> {
        if let Err(message) = checks::compile(&self.health_checks) {
            return Err(Problem { reason: Reason::HealthCheckInvalid, message });
        }
        if self.template {
            return Ok(());
        }
        let parsed = self.files.iter().map(|file| documents::parse(&file.place, &file.text, Some(addon)));
        let parsed: Result<Vec<_>, String> = parsed.collect();
        let parsed = parsed.and_then(|parsed| documents::in_order(parsed.into_iter().flatten().collect()));
        parsed.map(drop).map_err(|message| Problem { reason: Reason::ManifestInvalid, message })
    }

    /// Its name: the same content has the same one. Where the content stood makes no other revision of it.
    pub fn name(&self) -> String {
        let health_checks = serde_json::to_string(&self.health_checks).unwrap_or_default();
        let template = if self.template { "template" } else { "" };
        let mut parts = vec![self.version.as_deref().unwrap_or_default(), template, &health_checks];
        parts.extend(self.files.iter().map(|file| file.text.as_str()));
        let chart = self.chart.as_ref().map(FrozenChart::text);
        parts.extend(chart.as_deref());
        short_hash(&parts, 10)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crds::{AddonSpec, Reason};
    use serde_json::{Value, json};

    use super::{Revision, SourceRead, SourceSeen};

    fn spec(more: Value) -> AddonSpec {
        let mut spec =
            json!({"clusterSelector": {}, "source": {"manifests": {"from": [{"configMapRef": {"name": "a"}}]}}});
        spec.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        serde_json::from_value(spec).unwrap()
    }

    fn made(more: Value, text: &[u8]) -> Result<Revision, (Reason, String)> {
        let data = Some(BTreeMap::from([("x.yaml".to_owned(), text.to_vec())]));
        let seen = SourceSeen { kind: "ConfigMap", name: "a".into(), data };
        let read = SourceRead { manifests: vec![seen], ..SourceRead::default() };
        Revision::new("agent", &spec(more), read).map_err(|problem| (problem.reason, problem.message))
    }

    const GOOD: &[u8] = b"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}";

    #[test]
    fn another_version_another_text_and_other_checks_are_another_revision() {
        let name = |more: Value, text: &[u8]| made(more, text).unwrap().name();
        let first = name(json!({}), GOOD);
        assert_eq!(name(json!({"wave": 3, "resyncSeconds": 60}), GOOD), first);
        let check = json!([{"apiVersion": "v1", "kind": "ConfigMap", "expression": "true"}]);
        let template = json!({"source": {"manifests": {"template": true, "from": [{"configMapRef": {"name": "a"}}]}}});
        for more in [json!({"version": "2"}), json!({"healthChecks": check}), template] {
            assert_ne!(name(more.clone(), GOOD), first, "{more}");
        }
        assert_ne!(name(json!({}), b"{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}"), first);
    }

    #[test]
    fn a_chart_is_a_revision_of_its_version_and_of_what_is_installed() {
        let made = |more: Value| {
            let mut chart = json!({"oci": "oci://r/c", "version": "1.0.0"});
            chart.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
            let spec = json!({"clusterSelector": {}, "source": {"chart": chart}});
            Revision::new("agent", &serde_json::from_value(spec).unwrap(), SourceRead::default()).unwrap()
        };
        let first = made(json!({}));
        assert_eq!(first.version.as_deref(), Some("1.0.0"));
        assert_eq!(made(json!({"timeoutSeconds": 20, "caRef": {"name": "x"}})).name(), first.name());
        for more in [json!({"version": "1.0.1"}), json!({"values": {"a": 1}})] {
            assert_ne!(made(more.clone()).name(), first.name(), "{more}");
        }
    }

    #[test]
    fn what_cannot_be_applied_makes_no_revision() {
        let check = |more: Value, text: &[u8], reason: Reason, part: &str| {
            let (why, message) = made(more, text).unwrap_err();
            assert_eq!(why, reason, "{message}");
            assert!(message.contains(part), "{message}");
        };
        check(json!({}), b"a: [", Reason::ManifestInvalid, "ConfigMap a: x.yaml, document 1");
        check(json!({}), &[0xff], Reason::ManifestInvalid, "no text");
        let invalid = json!([{"apiVersion": "v1", "kind": "Pod", "expression": "1 +"}]);
        check(json!({"healthChecks": invalid}), GOOD, Reason::HealthCheckInvalid, "spec.healthChecks[0]");
        let missing = SourceSeen { kind: "Secret", name: "s".into(), data: None };
        let read = SourceRead { manifests: vec![missing], ..SourceRead::default() };
        let problem = Revision::new("agent", &spec(json!({})), read).unwrap_err();
        assert_eq!(problem.reason, Reason::SecretNotFound);
    }
}
