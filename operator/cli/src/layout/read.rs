//! An OCI image layout on disk: what is in it, each manifest after those that it names. Reads files, and nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use bundle::digest::{self, is_digest};
use serde_json::Value;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const NAME: &str = "org.opencontainers.image.ref.name";

/// A file that a manifest names, whose digest was compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Where it is.
    pub path: PathBuf,
    /// `sha256:...`
    pub digest: String,
    /// Its size in bytes.
    pub size: u64,
}

/// A manifest or an index.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Its text: the digest is that of these bytes.
    pub text: Vec<u8>,
    /// `sha256:...`
    pub digest: String,
    /// Its media type.
    pub kind: &'static str,
    /// The files that must be there before it.
    pub blobs: Vec<Blob>,
    /// What it says something of, and how a list of such things describes it.
    pub refers_to: Option<(String, Value)>,
}

/// A layout with one image, or one index of images.
#[derive(Debug, Clone)]
pub struct Layout {
    /// All manifests, in the order in which a registry takes them.
    pub manifests: Vec<Manifest>,
    /// The digest of the one that has the tag.
    pub main: String,
    /// The tag that the layout names.
    pub name: Option<String>,
}

impl Layout {
    /// Reads it. Every digest and size is compared.
    pub fn read(directory: &Path) -> Result<Self> {
        let index = directory.join("index.json");
        let text = fs::read(&index)
            .with_context(|| format!("{} is no OCI image layout: it has no index.json", directory.display()))?;
        let index: Value = serde_json::from_slice(&text).context("index.json cannot be read")?;
        let all = index["manifests"].as_array().context("index.json names no manifests")?;
        let mut layout = Self { manifests: Vec::new(), main: String::new(), name: None };
        let mut main = Vec::new();
        for descriptor in all {
            let digest = layout.add(directory, descriptor)?;
            if layout.manifests.iter().any(|it| it.digest == digest && it.refers_to.is_none()) {
                main.push((digest, descriptor["annotations"][NAME].as_str().map(str::to_owned)));
            }
        }
        let [(digest, name)] = main.as_slice() else {
            bail!("{} holds {} images: give one with a single image or index", directory.display(), main.len());
        };
        (layout.main, layout.name) = (digest.clone(), name.clone());
        Ok(layout)
    }

    /// Adds the manifest of this descriptor, after those that it names; its digest.
    fn add(&mut self, directory: &Path, descriptor: &Value) -> Result<String> {
        let blob = blob(directory, descriptor)?;
        if self.manifests.iter().any(|known| known.digest == blob.digest) {
            return Ok(blob.digest);
        }
        let text = fs::read(&blob.path).with_context(|| format!("failed to read {}", blob.path.display()))?;
        let content: Value =
            serde_json::from_slice(&text).with_context(|| format!("{} is no manifest", blob.digest))?;
        let kind = match descriptor["mediaType"].as_str() {
            Some(INDEX) => INDEX,
            Some(MANIFEST) => MANIFEST,
            other => bail!("{} is of the kind {}, and no manifest", blob.digest, other.unwrap_or("none")),
        };
        for child in content["manifests"].as_array().into_iter().flatten() {
            self.add(directory, child)?;
        }
        let files = content["layers"].as_array().into_iter().flatten().chain(content.get("config"));
        let blobs = files.map(|file| self::blob(directory, file)).collect::<Result<Vec<_>>>()?;
        let refers_to = content["subject"]["digest"].as_str().map(|subject| (subject.to_owned(), descriptor.clone()));
        let digest = blob.digest;
        self.manifests.push(Manifest { text, digest: digest.clone(), kind, blobs, refers_to });
        Ok(digest)
    }
}

fn blob(directory: &Path, descriptor: &Value) -> Result<Blob> {
    let digest = descriptor["digest"].as_str().unwrap_or_default();
    let hex = digest.strip_prefix("sha256:").filter(|hex| is_digest(hex));
    let hex = hex.with_context(|| format!("{digest:?} is no digest of the kind sha256"))?;
    let path = directory.join("blobs/sha256").join(hex);
    let size = fs::metadata(&path).with_context(|| format!("failed to read {}", path.display()))?.len();
    ensure!(Some(size) == descriptor["size"].as_u64(), "{} has another size than its descriptor says", path.display());
    ensure!(digest::of_file(&path)? == hex, "{} has another digest than its name says", path.display());
    Ok(Blob { path, digest: digest.to_owned(), size })
}

#[cfg(test)]
mod tests {
    use super::{INDEX, Layout, MANIFEST, NAME};
    use bundle::digest;
    use serde_json::{Value, json};
    use std::path::Path;

    fn put(directory: &Path, kind: &str, content: &[u8]) -> Value {
        let hex = digest::of_bytes(content);
        std::fs::write(directory.join("blobs/sha256").join(&hex), content).unwrap();
        json!({"mediaType": kind, "digest": format!("sha256:{hex}"), "size": content.len()})
    }

    /// A layout of an index with one image, and something that is said of it.
    fn layout(directory: &Path) {
        std::fs::create_dir_all(directory.join("blobs/sha256")).unwrap();
        let text = |value: Value| serde_json::to_vec(&value).unwrap();
        let (config, layer) = (put(directory, "c", b"{}"), put(directory, "l", b"layer"));
        let image = put(directory, MANIFEST, &text(json!({"config": config, "layers": [layer]})));
        let index = put(directory, INDEX, &text(json!({"manifests": [image]})));
        let says = put(directory, MANIFEST, &text(json!({"config": config, "layers": [], "subject": index})));
        let mut named = index;
        named["annotations"] = json!({NAME: "1.2.3"});
        std::fs::write(directory.join("index.json"), text(json!({"manifests": [named, says]}))).unwrap();
    }

    #[test]
    fn what_a_manifest_names_comes_before_it() {
        let directory = tempfile::tempdir().unwrap();
        layout(directory.path());
        let read = Layout::read(directory.path()).unwrap();
        let kinds: Vec<(&str, usize, bool)> =
            read.manifests.iter().map(|it| (it.kind, it.blobs.len(), it.refers_to.is_some())).collect();
        assert_eq!(kinds, [(MANIFEST, 2, false), (INDEX, 0, false), (MANIFEST, 1, true)]);
        assert_eq!((read.main, read.name.as_deref()), (read.manifests[1].digest.clone(), Some("1.2.3")));
    }

    #[test]
    fn a_file_that_was_changed_is_not_pushed() {
        let directory = tempfile::tempdir().unwrap();
        layout(directory.path());
        let hex = digest::of_bytes(b"layer");
        std::fs::write(directory.path().join("blobs/sha256").join(hex), "lay3r").unwrap();
        let error = format!("{:#}", Layout::read(directory.path()).unwrap_err());
        assert!(error.contains("another digest than its name says"), "{error}");
        let error = format!("{:#}", Layout::read(&directory.path().join("blobs")).unwrap_err());
        assert!(error.contains("is no OCI image layout"), "{error}");
    }
}
