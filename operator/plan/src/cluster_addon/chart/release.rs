//! A Helm release, as the cluster has it in a Secret of its own.

use crds::cluster_addon::AppliedObject;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cluster_addon::documents::Document;

/// Field manager of what Helm applies.
pub const HELM_FIELD_MANAGER: &str = "helm";

/// What is known of a release: its newest revision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Release {
    /// Its revision, as Helm counts them.
    pub revision: i64,
    /// `deployed`, `failed`, `pending-upgrade`, ...
    pub status: String,
    /// What Helm, or who called it, says of the revision.
    pub description: String,
    /// The chart's version.
    pub chart_version: Option<String>,
    /// The version of what the chart installs.
    pub app_version: Option<String>,
    /// When the revision was begun.
    pub deployed_at: Option<Timestamp>,
    /// Its objects, without hooks.
    pub documents: Vec<Document>,
}

impl Release {
    /// The release in the JSON of its Secret; `None`: it is none.
    pub fn parse(value: &Value) -> Option<Self> {
        let text = |pointer: &str| {
            let text = value.pointer(pointer).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let place = Place { name: text("/name")?, namespace: text("/namespace")? };
        let manifest = text("/manifest").unwrap_or_default();
        Some(Self {
            revision: value["version"].as_i64()?,
            status: text("/info/status")?,
            description: text("/info/description").unwrap_or_default(),
            chart_version: text("/chart/metadata/version"),
            app_version: text("/chart/metadata/appVersion"),
            deployed_at: text("/info/last_deployed").and_then(|at| at.parse().ok()),
            documents: documents(&manifest, &place),
        })
    }

    /// Whether somebody is at work on it, or was interrupted.
    pub fn is_pending(&self) -> bool {
        self.status.starts_with("pending-") || self.status == "uninstalling"
    }

    /// Whether its newest revision serves.
    pub fn is_deployed(&self) -> bool {
        self.status == "deployed"
    }
}

struct Place {
    name: String,
    namespace: String,
}

/// The objects of a rendered manifest. What is no object cannot be one on the cluster either.
fn documents(manifest: &str, place: &Place) -> Vec<Document> {
    let values = serde_yaml::Deserializer::from_str(manifest).map_while(|one| Value::deserialize(one).ok());
    let mut documents = Vec::new();
    for value in values {
        match value["kind"] == "List" {
            true => {
                documents.extend(value["items"].as_array().into_iter().flatten().filter_map(|one| document(one, place)))
            }
            false => documents.extend(document(&value, place)),
        }
    }
    documents
}

fn document(value: &Value, place: &Place) -> Option<Document> {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let api_version = text("/apiVersion")?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let (kind, name) = (text("/kind")?, text("/metadata/name")?);
    Some(Document {
        place: format!("release {}", place.name),
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: Some(text("/metadata/namespace").unwrap_or_else(|| place.namespace.clone())),
        object: marked(value.clone(), place),
        kind,
        name,
    })
}

/// The object as Helm applies it.
fn marked(mut object: Value, place: &Place) -> Value {
    let marks = [
        ("labels", "app.kubernetes.io/managed-by", "Helm"),
        ("annotations", "meta.helm.sh/release-name", &place.name),
        ("annotations", "meta.helm.sh/release-namespace", &place.namespace),
    ];
    for (map, key, value) in marks {
        if !object["metadata"][map].is_object() {
            object["metadata"][map] = json!({});
        }
        object["metadata"][map][key] = json!(value);
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("creationTimestamp");
    }
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    object
}

/// The objects of a release on this cluster, where it knows their kinds.
pub(super) fn inventory<'a>(
    objects: impl Iterator<Item = Option<&'a AppliedObject>>,
    most: usize,
) -> Vec<AppliedObject> {
    objects.flatten().take(most).cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Release;

    #[test]
    fn a_release_is_read_with_its_objects_as_helm_applies_them() {
        let manifest = "---\n# Source: agent/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n---\n\
                        apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b, namespace: other, labels: {x: y}, creationTimestamp: null}\n\
                        status: {}\n---\n# nothing\n";
        let release = Release::parse(&json!({
            "name": "agent", "namespace": "n", "version": 3, "manifest": manifest,
            "info": {"status": "deployed", "description": "Upgrade complete", "last_deployed": "2026-01-01T00:00:00.123456789+01:00"},
            "chart": {"metadata": {"name": "agent", "version": "1.2.0", "appVersion": "7"}},
        }))
        .unwrap();
        assert_eq!((release.revision, release.is_deployed(), release.is_pending()), (3, true, false));
        assert_eq!(release.deployed_at.unwrap().to_string(), "2025-12-31T23:00:00.123456789Z");
        let [a, b] = release.documents.as_slice() else { panic!("{:?}", release.documents) };
        assert_eq!((a.group.as_str(), a.version.as_str(), a.namespace.as_deref()), ("", "v1", Some("n")));
        assert_eq!((b.group.as_str(), b.namespace.as_deref()), ("apps", Some("other")));
        let expected = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "b", "namespace": "other", "labels": {"x": "y", "app.kubernetes.io/managed-by": "Helm"},
                "annotations": {"meta.helm.sh/release-name": "agent", "meta.helm.sh/release-namespace": "n"},
            },
        });
        assert_eq!(b.object, expected);
        assert_eq!(Release::parse(&json!({"name": "agent"})), None);
    }
}
