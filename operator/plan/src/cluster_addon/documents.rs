//! The documents of manifests: parsed, and refused where they are nothing that can be applied.

use std::collections::BTreeSet;

use crds::cluster_addon::AppliedObject;
use crds::names::label;
use serde::Deserialize;
use serde_json::{Value, json};

/// One object to apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Where it stands: `ConfigMap agent: all.yaml, document 2`.
    pub place: String,
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, if it names one.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// The object as it is applied.
    pub object: Value,
}

/// When a document is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// CustomResourceDefinitions: before all others.
    Definitions,
    /// Namespaces.
    Namespaces,
    /// The rest, in the order given.
    Rest,
}

/// The stage of a kind.
pub fn stage(group: &str, kind: &str) -> Stage {
    match (group, kind) {
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Stage::Definitions,
        ("", "Namespace") => Stage::Namespaces,
        _ => Stage::Rest,
    }
}

impl Document {
    /// When it is applied.
    pub fn stage(&self) -> Stage {
        stage(&self.group, &self.kind)
    }

    /// What is applied, where the cluster has the object: with its namespace, or without one.
    pub fn manifest(&self, object: &AppliedObject) -> Value {
        let mut manifest = self.object.clone();
        if let Some(metadata) = manifest["metadata"].as_object_mut() {
            match &object.namespace {
                Some(namespace) => drop(metadata.insert("namespace".to_owned(), json!(namespace))),
                None => drop(metadata.remove("namespace")),
            }
        }
        manifest
    }

    /// Whether it defines this kind.
    pub fn defines(&self, group: &str, kind: &str) -> bool {
        let spec = &self.object["spec"];
        self.stage() == Stage::Definitions && spec["group"] == group && spec["names"]["kind"] == kind
    }
}

/// Fields that only an API server writes.
const OF_THE_SERVER: [&str; 4] = ["managedFields", "resourceVersion", "selfLink", "uid"];

/// The objects of a text, with the label of their Addon, if they are of one; or where and why it has something else.
pub fn parse(place: &str, text: &str, addon: Option<&str>) -> Result<Vec<Document>, String> {
    let mut documents = Vec::new();
    for (index, document) in serde_yaml::Deserializer::from_str(text).enumerate() {
        let place = format!("{place}, document {}", index + 1);
        let value = Value::deserialize(document).map_err(|error| format!("{place}: it is no YAML: {error}"))?;
        // What is between two separators, or is comments alone.
        if !value.is_null() {
            take(&place, value, addon, &mut documents)?;
        }
    }
    Ok(documents)
}

/// Documents in the order in which they are applied; or which of them says the same as another one.
pub fn in_order(mut documents: Vec<Document>) -> Result<Vec<Document>, String> {
    let mut seen = BTreeSet::new();
    for document in &documents {
        let key = (&document.group, &document.kind, &document.namespace, &document.name);
        if !seen.insert(key) {
            let Document { place, kind, name, .. } = document;
            return Err(format!("{place}: {kind} {name} stands there a second time: take one of them out"));
        }
    }
    documents.sort_by_key(Document::stage);
    Ok(documents)
}

fn take(place: &str, value: Value, addon: Option<&str>, into: &mut Vec<Document>) -> Result<(), String> {
    let Value::Object(_) = &value else {
        return Err(format!("{place}: it is no object with apiVersion, kind and metadata"));
    };
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let needed = |pointer: &str, field: &str| {
        text(pointer).map(str::to_owned).ok_or_else(|| format!("{place}: {field} is missing, or is no text"))
    };
    let (api_version, kind) = (needed("/apiVersion", "apiVersion")?, needed("/kind", "kind")?);
    if api_version == "v1" && kind == "List" {
        let items = value["items"].as_array().cloned().unwrap_or_default();
        let mut items = items.into_iter().enumerate();
        return items.try_for_each(|(index, item)| take(&format!("{place}, items[{index}]"), item, addon, into));
    }
    if text("/metadata/generateName").is_some() && text("/metadata/name").is_none() {
        return Err(format!("{place}: metadata.generateName would make another object each time: give metadata.name"));
    }
    let name = needed("/metadata/name", "metadata.name")?;
    let namespace = match &value["metadata"]["namespace"] {
        Value::Null => None,
        Value::String(namespace) if !namespace.is_empty() => Some(namespace.clone()),
        _ => return Err(format!("{place}: metadata.namespace is no name: correct it, or take it out")),
    };
    if let Some(field) = OF_THE_SERVER.iter().find(|field| !value["metadata"][**field].is_null()) {
        return Err(format!("{place}: metadata.{field} is what an API server has written: take it out"));
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let (group, version) = (group.to_owned(), version.to_owned());
    let object = labelled(place, value, addon)?;
    into.push(Document { place: place.to_owned(), group, version, kind, namespace, name, object });
    Ok(())
}

fn labelled(place: &str, mut object: Value, addon: Option<&str>) -> Result<Value, String> {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        // Generators write `null` there.
        metadata.remove("creationTimestamp");
        let labels = metadata.entry("labels").or_insert(Value::Null);
        if labels.is_null() {
            *labels = json!({});
        }
        let Some(labels) = labels.as_object_mut() else {
            return Err(format!("{place}: metadata.labels is no map: correct it, or take it out"));
        };
        if let Some(addon) = addon {
            labels.insert(label::ADDON.to_owned(), json!(addon));
        }
    }
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::{in_order, parse};

    fn names(text: &str) -> Result<Vec<String>, String> {
        let documents = in_order(parse("ConfigMap a: b.yaml", text, Some("agent"))?)?;
        Ok(documents.into_iter().map(|document| format!("{}/{}", document.kind, document.name)).collect())
    }

    #[test]
    fn definitions_come_first_then_namespaces_then_the_rest_as_given() {
        let text = "# a comment\n---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: n}}\n---\n---\n\
                    {apiVersion: v1, kind: Namespace, metadata: {name: n}}\n---\n\
                    {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, metadata: {name: s}}, \
                    {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: c}}]}\n";
        let expected = ["CustomResourceDefinition/c", "Namespace/n", "Deployment/d", "Secret/s"];
        assert_eq!(names(text).unwrap(), expected);
        assert_eq!(names("").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_cannot_be_applied_is_refused_with_its_key_and_its_place() {
        let check = |text: &str, parts: &[&str]| {
            let why = names(text).unwrap_err();
            assert!(why.starts_with("ConfigMap a: b.yaml, document "), "{why}");
            for part in parts {
                assert!(why.contains(part), "no {part}: {why}");
            }
        };
        let good = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n";
        check(&format!("{good}a: [1\n"), &["document 2", "it is no YAML"]);
        check(&format!("{good}text\n"), &["document 2", "no object"]);
        check("{kind: ConfigMap, metadata: {name: a}}", &["apiVersion is missing"]);
        check("{apiVersion: v1, kind: 7, metadata: {name: a}}", &["kind is missing, or is no text"]);
        check("{apiVersion: v1, kind: ConfigMap}", &["metadata.name is missing"]);
        check("{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-}}", &["generateName"]);
        check("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: [b]}}", &["metadata.namespace"]);
        check("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: [b]}}", &["metadata.labels"]);
        check("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: x}}", &["metadata.uid", "take it out"]);
        check("{apiVersion: v1, kind: List, items: [{kind: A}]}", &["document 1, items[0]", "apiVersion"]);
        check(&format!("{good}{good}"), &["document 2", "ConfigMap a stands there a second time"]);
    }

    #[test]
    fn an_object_gets_the_label_of_its_addon_and_loses_what_is_not_its_own() {
        let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, creationTimestamp: null, labels: {x: y}}, status: {}}";
        let documents = parse("p", text, Some("agent")).unwrap();
        let expected = serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "labels": {"x": "y", "clusterwright.dev/addon": "agent"}},
        });
        assert_eq!(documents[0].object, expected);
    }
}
