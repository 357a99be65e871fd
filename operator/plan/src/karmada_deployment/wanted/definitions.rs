//! The plane's CustomResourceDefinitions: those of the bundle. Two of them have versions that the webhook converts;
//! where to ask it is applied with them, so that no version is ever served without. Each says which version it is of.

use crds::KarmadaDeployment;
use crds::names::annotation;
use serde_json::{Value, json};

use super::super::names::labels;
use super::super::place::{Stage, Wanted};
use super::super::release::DEFINITIONS;
use super::webhooks::url;
use crate::cluster_addon::documents::{Document, Stage as DocumentStage};

/// Definitions whose versions the webhook converts.
const CONVERTED: [&str; 2] = ["clusterresourcebindings.work.karmada.io", "resourcebindings.work.karmada.io"];

pub(super) fn definitions(object: &KarmadaDeployment, documents: &[Document], authority: &str) -> Vec<Wanted> {
    let definition = |document: &Document| {
        let mut manifest = document.object.clone();
        let own = manifest["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        manifest["metadata"]["labels"] = labels(object);
        own.into_iter().for_each(|(key, value)| {
            manifest["metadata"]["labels"].as_object_mut().and_then(|all| all.insert(key, value));
        });
        manifest["metadata"]["annotations"][annotation::VERSION] = json!(object.spec.version.as_str());
        if CONVERTED.contains(&document.name.as_str()) {
            manifest["spec"]["conversion"] = conversion(object, authority);
        }
        Wanted::in_plane(Stage::Definitions, manifest)
    };
    documents.iter().filter(|document| is_definition(document)).map(definition).collect()
}

/// What the documents of a bundle have that no definition is, or lack; none: they are as they should be.
pub fn incomplete(documents: &[Document]) -> Option<String> {
    if let Some(other) = documents.iter().find(|document| !is_definition(document)) {
        return Some(format!("{} {} is no CustomResourceDefinition ({})", other.kind, other.name, other.place));
    }
    let has = |name: &str| documents.iter().any(|document| document.name == name);
    let missing: Vec<&str> = DEFINITIONS.into_iter().filter(|name| !has(name)).collect();
    let first = missing.first()?;
    let more = missing.len() - 1;
    Some(match more {
        0 => format!("CustomResourceDefinition {first} is missing"),
        _ => format!("CustomResourceDefinition {first} and {more} more are missing"),
    })
}

fn is_definition(document: &Document) -> bool {
    document.stage() == DocumentStage::Definitions
}

fn conversion(object: &KarmadaDeployment, authority: &str) -> Value {
    json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": { "url": url(object, "convert"), "caBundle": authority },
            "conversionReviewVersions": ["v1"],
        },
    })
}
