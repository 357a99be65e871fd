//! `wright layout push`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use oci_client::Reference;
use reqwest::header::HeaderValue;
use serde_json::{Value, json};

use super::read::{Blob, Layout, Manifest};
use crate::download::Connection;
use crate::download::registry::{Registry, by_digest, push_file};
use crate::progress::Progress;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Push a layout to a registry
#[derive(Debug, Args)]
pub struct Push {
    /// The layout's directory
    directory: PathBuf,
    /// Where to: REGISTRY/REPOSITORY[:TAG]; without a tag, the one that the layout names
    target: String,
    #[command(flatten)]
    connection: Connection,
}

impl Push {
    /// Pushes what is not there yet, and the tag last.
    pub async fn run(self) -> Result<ExitCode> {
        let layout = Layout::read(&self.directory)?;
        let target = target(&self.target, layout.name.as_deref())?;
        let registry = self.connection.registry()?;
        registry.log_in(&target).await;
        let progress = Progress::new();
        for blob in layout.manifests.iter().flat_map(|manifest| &manifest.blobs) {
            let bar = progress.bar(&blob.digest);
            bar.begin(0, Some(blob.size));
            let Blob { path, digest, size } = blob;
            push_file(&registry, &target, path, digest, *size).await?;
        }
        for manifest in &layout.manifests {
            push_manifest(&registry, &by_digest(&target, &manifest.digest), manifest).await?;
        }
        push_referrers(&registry, &target, &layout).await?;
        let main = layout.manifests.iter().find(|manifest| manifest.digest == layout.main);
        push_manifest(&registry, &target, main.context("the layout has no image")?).await?;
        println!("{target}");
        println!("digest: {}", layout.main);
        Ok(ExitCode::SUCCESS)
    }
}

/// The reference to push to.
fn target(text: &str, name: Option<&str>) -> Result<Reference> {
    let last = text.rsplit('/').next().unwrap_or_default();
    let whole = match name {
        Some(name) if !last.contains(':') => format!("{text}:{name}"),
        _ => text.to_owned(),
    };
    whole.parse().with_context(|| format!("{text:?} is no place: give REGISTRY/REPOSITORY:TAG"))
}

async fn push_manifest(registry: &Registry, target: &Reference, manifest: &Manifest) -> Result<()> {
    let kind = HeaderValue::from_static(manifest.kind);
    let pushed = registry.client.push_manifest_raw(target, manifest.text.clone(), kind).await;
    pushed.with_context(|| format!("failed to push the manifest {} to {target}", manifest.digest))?;
    Ok(())
}

/// Where a registry keeps no list of what refers to an image, the list is an index under a tag: `sha256-...`.
async fn push_referrers(registry: &Registry, target: &Reference, layout: &Layout) -> Result<()> {
    let referring = layout.manifests.iter().filter_map(|manifest| manifest.refers_to.as_ref());
    let mut lists: std::collections::BTreeMap<&str, Vec<Value>> = std::collections::BTreeMap::new();
    for (subject, descriptor) in referring {
        lists.entry(subject).or_default().push(descriptor.clone());
    }
    for (subject, descriptors) in lists {
        let listed = registry.client.pull_referrers(&by_digest(target, subject), None).await;
        let listed = listed.map(|list| list.manifests).unwrap_or_default();
        let is_listed = |descriptor: &Value| listed.iter().any(|it| descriptor["digest"] == it.digest.as_str());
        if descriptors.iter().all(is_listed) {
            continue;
        }
        let tag = subject.replace(':', "-");
        let place = Reference::with_tag(target.registry().to_owned(), target.repository().to_owned(), tag);
        // What others say of it, a signature for example, stays.
        let former = registry.manifest(&place).await.ok().and_then(|(text, _)| serde_json::from_slice(&text).ok());
        let list = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": merged(former, descriptors)});
        let text = serde_json::to_vec(&list)?;
        let pushed = registry.client.push_manifest_raw(&place, text, HeaderValue::from_static(INDEX)).await;
        pushed.with_context(|| format!("failed to push the list of what refers to {subject}"))?;
    }
    Ok(())
}

/// What an index lists, and these after it, each once.
fn merged(former: Option<Value>, new: Vec<Value>) -> Vec<Value> {
    let former = former.and_then(|index| index["manifests"].as_array().cloned()).unwrap_or_default();
    let is_new = |it: &Value| new.iter().any(|descriptor| descriptor["digest"] == it["digest"]);
    former.into_iter().filter(|it| !is_new(it)).chain(new.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::{merged, target};
    use serde_json::json;

    #[test]
    fn the_layout_names_the_tag_where_nobody_does() {
        let check = |text: &str, name: Option<&str>, expected: &str| {
            assert_eq!(target(text, name).unwrap().to_string(), expected, "{text}");
        };
        check("r.example:5000/operator", Some("1.2.3"), "r.example:5000/operator:1.2.3");
        check("r.example:5000/operator:x", Some("1.2.3"), "r.example:5000/operator:x");
        check("r.example/a/operator", None, "r.example/a/operator:latest");
        assert!(target("r.example/Operator:1", None).is_err());
    }

    #[test]
    fn what_others_say_of_an_image_stays_in_the_list() {
        let new = || vec![json!({"digest": "sha256:b"})];
        assert_eq!(merged(None, new()), new());
        let former = json!({"manifests": [{"digest": "sha256:a"}, {"digest": "sha256:b"}]});
        assert_eq!(merged(Some(former), new()), [json!({"digest": "sha256:a"}), json!({"digest": "sha256:b"})]);
    }
}
