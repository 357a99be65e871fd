//! A revision as one cluster gets it: rendered, parsed, in order.

use crds::Reason;
use crds::addon::HealthCheck;
use crds::cluster_addon::MOST_OBJECTS;
use serde_json::{Map, Value};

use super::documents::{Document, in_order, parse};
use crate::addon::Problem;
use crate::addon::revision::Revision;
use crate::naming::short_hash;
use crate::template;

/// What is applied to a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// The revision that it was made from.
    pub revision: String,
    /// Its version.
    pub version: Option<String>,
    /// Digest of the documents.
    pub digest: String,
    /// The documents, in the order in which they are applied.
    pub documents: Vec<Document>,
    /// When they are healthy, beside what they say themselves.
    pub health_checks: Vec<HealthCheck>,
}

/// The revision with the facts in it; or where and why it cannot be applied.
pub fn prepare(addon: &str, name: &str, revision: Revision, facts: &Map<String, Value>) -> Result<Prepared, Problem> {
    let mut documents = Vec::new();
    let invalid = |message: String| Problem { reason: Reason::ManifestInvalid, message };
    for file in &revision.files {
        let text = match revision.template {
            true => template::render(&file.place, &file.text, facts)
                .map_err(|message| Problem { reason: Reason::ManifestNotRendered, message })?,
            false => file.text.clone(),
        };
        documents.extend(parse(&file.place, &text, Some(addon)).map_err(invalid)?);
    }
    if documents.len() > MOST_OBJECTS {
        let message = format!(
            "the manifests are {} objects, and an Addon has at most {MOST_OBJECTS}: split them into several Addons",
            documents.len()
        );
        return Err(Problem { reason: Reason::TooManyObjects, message });
    }
    let documents = in_order(documents).map_err(invalid)?;
    let texts: Vec<String> = documents.iter().map(|document| document.object.to_string()).collect();
    let parts: Vec<&str> = texts.iter().map(String::as_str).collect();
    Ok(Prepared {
        revision: name.to_owned(),
        version: revision.version,
        digest: short_hash(&parts, 16),
        documents,
        health_checks: revision.health_checks,
    })
}
