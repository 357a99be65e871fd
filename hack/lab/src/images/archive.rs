//! Docker archives, written straight from layers: a manifest, a configuration, one tar a layer.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bundle::digest;
use bundle::tree::Tree;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tar::{Builder, Header};

use super::{Reference, architecture};
use crate::cache::{create_dir, publish};

/// What runs in an image when nobody says otherwise.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Settings {
    /// The command that is always run.
    pub entrypoint: Vec<String>,
    /// Its arguments, or the command where there is no entry point.
    pub command: Vec<String>,
    /// `NAME=value`.
    pub environment: Vec<String>,
    /// `uid:gid`; empty is root.
    pub user: String,
    /// The working directory.
    pub directory: String,
}

/// One layer on disk.
#[derive(Debug, Clone)]
pub struct Layer {
    /// The uncompressed tar.
    pub file: PathBuf,
    /// Its SHA-256 in hex.
    pub digest: String,
}

/// A layer's digest, kept beside it: reading 100 MB again for it would cost a second.
#[derive(Serialize, Deserialize)]
struct Known {
    digest: String,
}

impl Layer {
    /// The layer that was kept under `file`, if any.
    pub fn kept(file: &Path) -> Option<Self> {
        let known: Known = serde_json::from_slice(&fs::read(beside(file)).ok()?).ok()?;
        file.is_file().then(|| Self { file: file.to_owned(), digest: known.digest })
    }

    /// Keeps the layer that `write` makes under `file`.
    pub fn keep(file: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        publish(file, write)?;
        let digest = digest::of_file(file)?;
        publish(&beside(file), |draft| {
            let known = serde_json::to_vec(&Known { digest: digest.clone() })?;
            fs::write(draft, known).with_context(|| format!("failed to write {}", draft.display()))
        })?;
        Ok(Self { file: file.to_owned(), digest })
    }
}

fn beside(file: &Path) -> PathBuf {
    file.with_extension("json")
}

/// Whether the archive was made by this recipe.
pub fn is_fresh(archive: &Path, recipe: &str) -> bool {
    archive.is_file() && fs::read_to_string(archive.with_extension("recipe")).is_ok_and(|it| it == recipe)
}

/// Writes `reference`'s archive: the layers `below`, then `top`; remembers the recipe.
pub fn write(
    archive: &Path,
    reference: &Reference,
    settings: &Settings,
    below: &[Layer],
    top: &Tree,
    recipe: &str,
) -> Result<()> {
    let directory = archive.parent().context("an archive lies in a directory")?;
    create_dir(directory)?;
    let draft = tempfile::NamedTempFile::new_in(directory).context("failed to create a layer")?;
    let mut buffered = BufWriter::with_capacity(1 << 20, draft.as_file());
    top.write(&mut buffered)?;
    buffered.flush().context("failed to write a layer")?;
    drop(buffered);
    let mut layers = below.to_vec();
    layers.push(Layer { file: draft.path().to_owned(), digest: digest::of_file(draft.path())? });

    publish(archive, |path| {
        assemble(path, reference, settings, &layers)
            .with_context(|| format!("failed to write the archive of {reference}"))
    })?;
    publish(&archive.with_extension("recipe"), |path| Ok(fs::write(path, recipe)?))
}

fn assemble(path: &Path, reference: &Reference, settings: &Settings, layers: &[Layer]) -> Result<()> {
    let config = serde_json::to_vec(&configuration(settings, layers, architecture(), "1970-01-01T00:00:00Z"))?;
    let config_name = format!("{}.json", digest::of_bytes(&config));
    let names: Vec<String> = layers.iter().map(|layer| format!("{}.tar", layer.digest)).collect();
    let manifest =
        serde_json::to_vec(&json!([{ "Config": config_name, "RepoTags": [reference.to_string()], "Layers": names }]))?;

    let mut tar = Builder::new(BufWriter::with_capacity(1 << 20, File::create(path)?));
    append(&mut tar, "manifest.json", manifest.len() as u64, manifest.as_slice())?;
    append(&mut tar, &config_name, config.len() as u64, config.as_slice())?;
    for (layer, name) in layers.iter().zip(&names) {
        let file = File::open(&layer.file)?;
        append(&mut tar, name, file.metadata()?.len(), file)?;
    }
    tar.into_inner()?.flush()?;
    Ok(())
}

fn append(tar: &mut Builder<impl Write>, name: &str, size: u64, content: impl Read) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_size(size);
    Ok(tar.append_data(&mut header, name, content)?)
}

/// An image's configuration. Where nobody wants a time, it is the first.
pub(super) fn configuration(
    settings: &Settings,
    layers: &[Layer],
    architecture: &str,
    created: &str,
) -> serde_json::Value {
    let digests: Vec<String> = layers.iter().map(|layer| format!("sha256:{}", layer.digest)).collect();
    json!({
        "architecture": architecture,
        "os": "linux",
        "created": created,
        "config": {
            "Entrypoint": settings.entrypoint,
            "Cmd": settings.command,
            "Env": settings.environment,
            "User": settings.user,
            "WorkingDir": settings.directory,
        },
        "rootfs": { "type": "layers", "diff_ids": digests },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::PAUSE;

    fn read(archive: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(File::open(archive).unwrap());
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (entry.path().unwrap().to_string_lossy().into_owned(), content)
        });
        entries.collect()
    }

    #[test]
    fn every_name_in_the_manifest_is_in_the_archive_and_digests_are_true() {
        let dir = tempfile::tempdir().unwrap();
        let below = Layer::keep(&dir.path().join("base.tar"), |path| Ok(fs::write(path, "base")?)).unwrap();
        let mut top = Tree::new();
        top.text("/etc/motd", "hello");
        let archive = dir.path().join("image.tar");
        let settings = Settings { entrypoint: vec!["/pause".into()], ..Settings::default() };
        write(&archive, &PAUSE, &settings, &[below], &top, "recipe").unwrap();

        let files = read(&archive);
        let manifest: serde_json::Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
        assert_eq!(manifest[0]["RepoTags"], json!(["registry.k8s.io/pause:3.10.1"]));
        let config_name = manifest[0]["Config"].as_str().unwrap();
        let config: serde_json::Value = serde_json::from_slice(&files[config_name]).unwrap();
        assert_eq!(config["config"]["Entrypoint"], json!(["/pause"]));
        let layers = manifest[0]["Layers"].as_array().unwrap();
        let digests = config["rootfs"]["diff_ids"].as_array().unwrap();
        assert_eq!(layers.len(), 2);
        for (name, digest) in layers.iter().zip(digests) {
            let content = &files[name.as_str().unwrap()];
            assert_eq!(digest.as_str().unwrap(), format!("sha256:{}", digest::of_bytes(content)));
        }
    }

    #[test]
    fn an_archive_is_fresh_until_its_recipe_changes() {
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("image.tar");
        assert!(!is_fresh(&archive, "one"));
        write(&archive, &PAUSE, &Settings::default(), &[], &Tree::new(), "one").unwrap();
        assert!(is_fresh(&archive, "one"));
        assert!(!is_fresh(&archive, "two"));
    }

    #[test]
    fn a_kept_layer_is_known_by_its_digest() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("layer.tar");
        assert!(Layer::kept(&file).is_none());
        Layer::keep(&file, |path| Ok(fs::write(path, "x")?)).unwrap();
        assert_eq!(Layer::kept(&file).unwrap().digest, digest::of_bytes(b"x"));
    }
}
