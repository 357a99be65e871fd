//! OCI image layouts: an image for each architecture, the index over them, and what is said of each image (what it is
//! made of, how it was made), which refers to it. The same files give the same layout, byte for byte.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bundle::digest;
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};

use super::archive::{Layer, Settings, configuration};
use crate::cache::{create_dir, publish};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// The configuration of a manifest that is no image.
const EMPTY: &str = "application/vnd.oci.empty.v1+json";

/// An image of one architecture.
#[derive(Debug, Clone)]
pub struct Image {
    /// As images name it: `amd64`.
    pub architecture: &'static str,
    /// What runs in it.
    pub settings: Settings,
    /// Its layers, the lowest first.
    pub layers: Vec<Layer>,
    /// What it is made of: a bill of materials in CycloneDX's JSON.
    pub materials: Value,
}

/// What all images of a layout have in common.
#[derive(Debug, Clone)]
pub struct Labels {
    /// The image's name, without registry: `operator`.
    pub name: String,
    /// The version, which is the tag.
    pub version: String,
    /// The commit that it was made from.
    pub revision: String,
    /// When that was made, in RFC 3339: an image has no other time.
    pub created: String,
}

/// Writes the layout in place of what was in the directory; the digest of its index, `sha256:...`. `provenance` says
/// how the index of this digest was made.
pub fn write(
    directory: &Path,
    labels: &Labels,
    images: &[Image],
    provenance: impl Fn(&str) -> Value,
) -> Result<String> {
    let mut digest = String::new();
    publish(directory, |draft| {
        let layout = Layout { directory: draft.to_owned() };
        create_dir(&layout.blobs())?;
        digest = layout.write(labels, images, &provenance)?;
        Ok(())
    })
    .with_context(|| format!("failed to write the layout of {}", labels.name))?;
    Ok(digest)
}

struct Layout {
    directory: PathBuf,
}

impl Layout {
    fn blobs(&self) -> PathBuf {
        self.directory.join("blobs/sha256")
    }

    fn write(&self, labels: &Labels, images: &[Image], provenance: &impl Fn(&str) -> Value) -> Result<String> {
        let (mut manifests, mut referrers) = (Vec::new(), Vec::new());
        for image in images {
            let manifest = self.image(labels, image)?;
            referrers.push(self.referrer(&manifest, "application/vnd.cyclonedx+json", &image.materials)?);
            manifests.push(manifest);
        }
        let index = self.json(
            INDEX,
            &json!({
                "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests, "annotations": annotations(labels),
            }),
        )?;
        let digest = index["digest"].as_str().unwrap_or_default().to_owned();
        referrers.push(self.referrer(&index, "application/vnd.in-toto+json", &provenance(&digest))?);
        let mut named = index;
        named["annotations"] = json!({"org.opencontainers.image.ref.name": labels.version});
        let all: Vec<Value> = std::iter::once(named).chain(referrers).collect();
        let whole = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": all});
        fs::write(self.directory.join("index.json"), serde_json::to_vec(&whole)?)?;
        fs::write(self.directory.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
        Ok(digest)
    }

    /// One image; the descriptor of its manifest.
    fn image(&self, labels: &Labels, image: &Image) -> Result<Value> {
        let layers = image.layers.iter().map(|layer| self.layer(layer)).collect::<Result<Vec<_>>>()?;
        let config = configuration(&image.settings, &image.layers, image.architecture, &labels.created);
        let config = self.json(CONFIG, &config)?;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers,
            "annotations": annotations(labels),
        });
        let mut manifest = self.json(MANIFEST, &manifest)?;
        manifest["platform"] = json!({"architecture": image.architecture, "os": "linux"});
        Ok(manifest)
    }

    /// What is said of the manifest that `subject` describes; its own descriptor.
    fn referrer(&self, subject: &Value, kind: &str, content: &Value) -> Result<Value> {
        let subject = json!({
            "mediaType": subject["mediaType"], "digest": subject["digest"], "size": subject["size"],
        });
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": kind,
            "config": self.blob(EMPTY, b"{}")?, "layers": [self.json(kind, content)?], "subject": subject,
        });
        let mut descriptor = self.json(MANIFEST, &manifest)?;
        descriptor["artifactType"] = json!(kind);
        Ok(descriptor)
    }

    fn json(&self, kind: &str, value: &Value) -> Result<Value> {
        self.blob(kind, &serde_json::to_vec(value)?)
    }

    fn blob(&self, kind: &str, content: &[u8]) -> Result<Value> {
        let digest = digest::of_bytes(content);
        fs::write(self.blobs().join(&digest), content)?;
        Ok(json!({"mediaType": kind, "digest": format!("sha256:{digest}"), "size": content.len()}))
    }

    /// The layer, compressed.
    fn layer(&self, layer: &Layer) -> Result<Value> {
        let draft = self.blobs().join("draft");
        let into = BufWriter::with_capacity(1 << 20, File::create(&draft)?);
        // Neither a name nor a time in its head.
        let mut compressed = GzBuilder::new().mtime(0).write(into, Compression::new(6));
        let opening = || format!("failed to read {}", layer.file.display());
        let file = File::open(&layer.file).with_context(opening)?;
        std::io::copy(&mut BufReader::with_capacity(1 << 20, file), &mut compressed).with_context(opening)?;
        compressed.finish()?.flush()?;
        let (digest, size) = (digest::of_file(&draft)?, fs::metadata(&draft)?.len());
        fs::rename(&draft, self.blobs().join(&digest))?;
        Ok(json!({"mediaType": LAYER, "digest": format!("sha256:{digest}"), "size": size}))
    }
}

fn annotations(labels: &Labels) -> Value {
    json!({
        "org.opencontainers.image.created": labels.created,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.revision": labels.revision,
        "org.opencontainers.image.title": labels.name,
        "org.opencontainers.image.version": labels.version,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn labels() -> Labels {
        Labels {
            name: "operator".into(),
            version: "1.2.3".into(),
            revision: "abc".into(),
            created: "2026-11-01T00:00:00Z".into(),
        }
    }

    fn image(directory: &Path, architecture: &'static str) -> Image {
        let file = directory.join(format!("{architecture}.tar"));
        let layer = Layer::keep(&file, |path| Ok(fs::write(path, format!("layer of {architecture}"))?)).unwrap();
        let settings = Settings { entrypoint: vec!["/usr/local/bin/operator".into()], ..Settings::default() };
        Image { architecture, settings, layers: vec![layer], materials: json!({"of": architecture}) }
    }

    fn written(directory: &Path) -> (String, BTreeMap<String, Vec<u8>>) {
        let images = [image(directory, "amd64"), image(directory, "arm64")];
        let layout = directory.join("layout");
        let digest = write(&layout, &labels(), &images, |digest| json!({"subject": digest})).unwrap();
        let blobs = fs::read_dir(layout.join("blobs/sha256")).unwrap().map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
        });
        let mut files: BTreeMap<String, Vec<u8>> = blobs.collect();
        files.insert("index.json".into(), fs::read(layout.join("index.json")).unwrap());
        (digest, files)
    }

    #[test]
    fn two_builds_of_the_same_files_give_one_digest() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_eq!(written(one.path()), written(other.path()));
        // And the second into the same place.
        assert_eq!(written(one.path()), written(other.path()));
    }

    #[test]
    fn every_descriptor_leads_to_a_blob_of_its_digest_and_size() {
        let directory = tempfile::tempdir().unwrap();
        let (digest, files) = written(directory.path());
        let mut seen = 0;
        let mut next: Vec<Value> = vec![serde_json::from_slice(&files["index.json"]).unwrap()];
        while let Some(value) = next.pop() {
            match &value {
                Value::Object(fields) => {
                    if let (Some(digest), Some(size)) = (value["digest"].as_str(), value["size"].as_u64()) {
                        let blob = &files[digest.strip_prefix("sha256:").unwrap()];
                        assert_eq!((digest::of_bytes(blob), blob.len() as u64), (digest[7..].to_owned(), size));
                        seen += 1;
                        if value["mediaType"].as_str().is_some_and(|kind| kind.ends_with("+json")) {
                            next.push(serde_json::from_slice(blob).unwrap());
                        }
                    }
                    next.extend(fields.values().cloned());
                }
                Value::Array(items) => next.extend(items.iter().cloned()),
                _ => {}
            }
        }
        assert!(seen > 12, "{seen}");
        let index: Value = serde_json::from_slice(&files[&digest[7..]]).unwrap();
        let platforms: Vec<&Value> =
            index["manifests"].as_array().unwrap().iter().map(|it| &it["platform"]["architecture"]).collect();
        assert_eq!(platforms, [&json!("amd64"), &json!("arm64")]);
    }

    #[test]
    fn an_image_says_of_what_it_is_made_and_the_index_how() {
        let directory = tempfile::tempdir().unwrap();
        let (digest, files) = written(directory.path());
        let top: Value = serde_json::from_slice(&files["index.json"]).unwrap();
        let manifests = top["manifests"].as_array().unwrap();
        assert_eq!(manifests[0]["digest"], digest);
        assert_eq!(manifests[0]["annotations"]["org.opencontainers.image.ref.name"], "1.2.3");
        let kinds: Vec<&str> = manifests[1..].iter().map(|it| it["artifactType"].as_str().unwrap()).collect();
        let materials = "application/vnd.cyclonedx+json";
        assert_eq!(kinds, [materials, materials, "application/vnd.in-toto+json"]);
        let blob = |value: &Value| -> Value {
            serde_json::from_slice(&files[value["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap()]).unwrap()
        };
        let last = blob(&manifests[3]);
        assert_eq!(last["subject"]["digest"], digest);
        assert_eq!(blob(&last["layers"][0]), json!({"subject": digest}));
        let first = blob(&manifests[1]);
        assert_eq!(first["subject"]["digest"], blob(&manifests[0])["manifests"][0]["digest"]);
    }
}
