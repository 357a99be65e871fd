//! A whole bundle as one artifact of a registry. Its configuration is the index, and its layers are
//! the files, so that the digests of the index are those of the registry.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ::bundle::digest::{self, is_digest};
use ::bundle::import::{Imported, Needed, plan};
use ::bundle::index::{self, Index};
use ::bundle::publish::create_dir;
use ::bundle::verify::problem;
use anyhow::{Context, Result, bail, ensure};
use oci_client::Reference;
use oci_client::manifest::OCI_IMAGE_MEDIA_TYPE;
use serde_json::{Value, json};

use super::{OCI, parse_reference};
use crate::download::Connection;
use crate::download::registry::{Registry, push_file};
use crate::progress::{Progress, bytes};

const ARTIFACT: &str = "application/vnd.clusterwright.bundle.v1";
const INDEX: &str = "application/vnd.clusterwright.bundle.index.v1+json";
const FILE: &str = "application/vnd.clusterwright.bundle.file.v1";

/// Pushes what the registry does not have, and the tag last.
pub async fn push(bundle: &Path, target: &Reference, connection: &Connection) -> Result<()> {
    let text = fs::read(bundle.join(index::FILE)).context("failed to read the index")?;
    let index = Index::read(bundle)?;
    let registry = connection.registry()?;
    registry.log_in(target).await;
    let progress = Progress::new();
    let (mut pushed, mut there) = (0, 0);
    for artifact in &index.artifacts {
        let bar = progress.bar(&artifact.to_string());
        if let Some(problem) = problem(bundle, artifact)? {
            bail!("{problem}: nothing was tagged; see `wright bundle verify {}`", bundle.display());
        }
        let digest = format!("sha256:{}", artifact.sha256.to_lowercase());
        bar.begin(0, Some(artifact.size));
        if push_file(&registry, target, &bundle.join(&artifact.path), &digest, artifact.size).await? {
            pushed += artifact.size;
        } else {
            there += artifact.size;
        }
    }
    let digest = push_manifest(&registry, target, text, &index).await?;
    println!("pushed {}, and {} were there: {target}", bytes(pushed), bytes(there));
    println!("digest: {digest}");
    Ok(())
}

async fn push_manifest(registry: &Registry, target: &Reference, text: Vec<u8>, index: &Index) -> Result<String> {
    let config = format!("sha256:{}", digest::of_bytes(&text));
    let manifest = serde_json::to_vec(&manifest(&config, text.len(), index))?;
    let pushing = || format!("failed to push the index to {target}");
    if !registry.client.blob_exists(target, &config).await.with_context(pushing)? {
        registry.client.push_blob(target, text, &config).await.with_context(pushing)?;
    }
    let digest = format!("sha256:{}", digest::of_bytes(&manifest));
    let kind = reqwest::header::HeaderValue::from_static(OCI_IMAGE_MEDIA_TYPE);
    registry.client.push_manifest_raw(target, manifest, kind).await.with_context(pushing)?;
    Ok(digest)
}

fn manifest(config: &str, size: usize, index: &Index) -> Value {
    let mut seen = BTreeSet::new();
    let files = index.artifacts.iter().filter(|artifact| seen.insert(artifact.sha256.to_lowercase()));
    let layers: Vec<Value> = files
        .map(|artifact| {
            json!({
                "mediaType": FILE,
                "digest": format!("sha256:{}", artifact.sha256.to_lowercase()),
                "size": artifact.size,
                "annotations": {"org.opencontainers.image.title": artifact.path},
            })
        })
        .collect();
    json!({
        "schemaVersion": 2,
        "mediaType": OCI_IMAGE_MEDIA_TYPE,
        "artifactType": ARTIFACT,
        "config": {"mediaType": INDEX, "digest": config, "size": size},
        "layers": layers,
    })
}

/// Imports what `push` has put there.
pub async fn pull(connection: &Connection, reference: &str, bundle: &Path, promised: Option<&str>) -> Result<Imported> {
    let source = parse_reference(&format!("{OCI}{reference}"))?;
    let registry = connection.registry()?;
    let (text, _) = registry.manifest(&source).await?;
    let found: Value = serde_json::from_slice(&text).with_context(|| format!("{source} cannot be read"))?;
    let config = found["config"]["digest"].as_str().unwrap_or_default();
    let digits = config.strip_prefix("sha256:").unwrap_or_default();
    ensure!(
        found["config"]["mediaType"] == INDEX && is_digest(digits),
        "{source} is no bundle, but something else: `wright bundle push` puts one there"
    );
    let mut incoming = Vec::new();
    registry.client.pull_blob(&source, config, &mut incoming).await.context("failed to read the index")?;
    ensure!(digest::of_bytes(&incoming) == digits, "the index of {source} has another digest than its manifest says");
    let mut plan = plan(&incoming, &source.to_string(), bundle, promised)?;
    let progress = Progress::new();
    for Needed { artifact, .. } in &plan.needed {
        let bar = progress.bar(&artifact.to_string());
        bar.begin(0, Some(artifact.size));
        let path = bundle.join(&artifact.path);
        let draft = bundle.join(crate::download::PARTIAL).join(artifact.sha256.to_lowercase());
        let pulling = || format!("failed to pull {artifact} from {source}");
        let file = tokio::fs::File::create(&draft).await.with_context(pulling)?;
        let digest = format!("sha256:{}", artifact.sha256.to_lowercase());
        // It compares the digest.
        registry.client.pull_blob(&source, digest.as_str(), file).await.with_context(pulling)?;
        if let Some(parent) = path.parent() {
            create_dir(parent)?;
        }
        fs::rename(&draft, &path).with_context(pulling)?;
        let wrong = problem(bundle, artifact)?;
        ensure!(wrong.is_none(), "{}", wrong.unwrap_or_default());
    }
    plan.finish(bundle)
}
