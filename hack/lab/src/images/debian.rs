//! Layers on a Debian: the base as one, and what a script installs on it as another, like `FROM` and `RUN`.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use bundle::tree::file_fingerprint;

use super::Architecture;
use super::archive::Layer;
use crate::cache::{Cache, create_dir, publish};
use crate::logged;
use crate::progress::{Progress, Task};
use crate::rootfs::{container, recipe_hash};

/// A root filesystem that images build on.
pub struct Base {
    root: PathBuf,
    id: String,
    /// All of it as one layer.
    pub layer: Layer,
}

impl Base {
    /// The image or directory that the user gives, or else a Debian made from its packages, for this machine where no
    /// architecture is named.
    pub fn prepare(
        given: Option<&Path>,
        architecture: Option<Architecture>,
        cache: &Cache,
        progress: &Progress,
    ) -> Result<Self> {
        let (root, id) = match given {
            None => {
                let root = container::build(architecture, cache, progress)?;
                let id = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
                (root, id)
            }
            Some(given) => {
                let id = format!("given-{}", recipe_hash(&[&file_fingerprint(given)?]));
                let root = if given.is_dir() { given.to_owned() } else { unpacked(given, &id, cache)? };
                (root, id)
            }
        };
        let file = cache.layers().join(format!("{id}.tar"));
        let layer = match Layer::kept(&file) {
            Some(layer) => layer,
            None => {
                let task = progress.task("layer of the base image");
                let layer = Layer::keep(&file, |draft| pack(&root, draft, cache, &task))?;
                task.done();
                layer
            }
        };
        Ok(Self { root, id, layer })
    }

    /// The layer that `script` adds to the base. `inputs` is there as /run/inputs while it runs.
    pub fn run(
        &self,
        name: &str,
        script: &str,
        inputs: &[PathBuf],
        cache: &Cache,
        progress: &Progress,
    ) -> Result<Layer> {
        let mut recipe = vec![self.id.clone(), script.to_owned(), include_str!("run.sh").to_owned()];
        for input in inputs.iter().filter(|it| it.is_file()) {
            recipe.push(fs::read_to_string(input).with_context(|| format!("failed to read {}", input.display()))?);
        }
        let recipe: Vec<&str> = recipe.iter().map(String::as_str).collect();
        let file = cache.layers().join(format!("{name}-{}.tar", recipe_hash(&recipe)));
        if let Some(layer) = Layer::kept(&file) {
            return Ok(layer);
        }
        let task = progress.task(format!("layer of the {name} image"));
        let work = cache.layers().join(format!(".{name}.overlay"));
        publish(&work, |draft| self.run_script(draft, script, inputs, cache, &cache.log(name), &task))?;
        let upper = work.join("upper");
        whiteouts(&upper)?;
        let layer = Layer::keep(&file, |draft| pack(&upper, draft, cache, &task))?;
        fs::remove_dir_all(&work).with_context(|| format!("failed to remove {}", work.display()))?;
        task.done();
        Ok(layer)
    }

    fn run_script(
        &self,
        work: &Path,
        script: &str,
        inputs: &[PathBuf],
        cache: &Cache,
        log: &Path,
        task: &Task,
    ) -> Result<()> {
        let downloads = cache.downloads("debian");
        create_dir(&downloads)?;
        create_dir(work)?;
        let mut run = Command::new("unshare");
        run.args(["--mount", "--propagation", "private", "sh", "-euc", include_str!("run.sh"), "sh"])
            .arg(&self.root)
            .arg(work)
            .arg(script)
            .arg(&downloads)
            .args(inputs);
        logged::run(&mut run, log, task)
    }
}

/// Packs a directory with its owners, and without times: the same packages give the same layer. Compiled Python is
/// valid by itself (`executor.sh`), not by its source's time.
fn pack(root: &Path, into: &Path, cache: &Cache, task: &Task) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--numeric-owner", "--sort=name", "--xattrs", "--xattrs-include=security.capability"])
        .args(["--mtime=@0", "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime"])
        .arg("--file")
        .arg(into)
        .arg("--directory")
        .arg(root)
        .arg(".");
    logged::run(&mut tar, &cache.log("layers"), task)
}

/// Turns what overlayfs says for "deleted" (a device 0:0) into what images say (a file `.wh.NAME`).
fn whiteouts(directory: &Path) -> Result<()> {
    let looking = || format!("failed to look through {}", directory.display());
    for entry in fs::read_dir(directory).with_context(looking)? {
        let entry = entry.with_context(looking)?;
        let (path, metadata) = (entry.path(), entry.metadata().with_context(looking)?);
        if metadata.is_dir() {
            whiteouts(&path)?;
        } else if metadata.file_type().is_char_device() && metadata.rdev() == 0 {
            fs::remove_file(&path).with_context(looking)?;
            let name = format!(".wh.{}", entry.file_name().to_string_lossy());
            fs::write(directory.join(name), "").with_context(looking)?;
        }
    }
    Ok(())
}

/// Unpacks the layers of a docker-archive one over the other.
fn unpacked(archive: &Path, id: &str, cache: &Cache) -> Result<PathBuf> {
    let root = cache.rootfs().join(id);
    if root.is_dir() {
        return Ok(root);
    }
    publish(&root, |draft| {
        create_dir(draft)?;
        let parts = tempfile::tempdir().context("failed to create a directory for layers")?;
        tar(&["--extract"], archive, parts.path())?;
        let manifest = parts.path().join("manifest.json");
        let manifest = fs::read(&manifest)
            .with_context(|| format!("{} is no docker-archive: it has no manifest.json", archive.display()))?;
        let manifest: serde_json::Value =
            serde_json::from_slice(&manifest).context("failed to read the base image's manifest.json")?;
        let layers = manifest[0]["Layers"].as_array().context("the base image names no layers")?;
        for layer in layers.iter().filter_map(|it| it.as_str()) {
            let layer = parts.path().join(layer);
            tar(&["--extract", "--numeric-owner", "--xattrs", "--same-permissions"], &layer, draft)?;
            apply_whiteouts(draft)?;
        }
        Ok(())
    })?;
    Ok(root)
}

fn tar(arguments: &[&str], archive: &Path, into: &Path) -> Result<()> {
    let status = Command::new("tar")
        .args(arguments)
        .arg("--file")
        .arg(archive)
        .arg("--directory")
        .arg(into)
        .status()
        .context("failed to run tar")?;
    if !status.success() {
        bail!("failed to unpack {}", archive.display());
    }
    Ok(())
}

/// Deletes what a layer's `.wh.NAME` files say is gone.
fn apply_whiteouts(directory: &Path) -> Result<()> {
    let looking = || format!("failed to look through {}", directory.display());
    for entry in fs::read_dir(directory).with_context(looking)? {
        let path = entry.with_context(looking)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(gone) = name.strip_prefix(".wh.") {
            fs::remove_file(&path).with_context(looking)?;
            let gone = directory.join(gone);
            match fs::symlink_metadata(&gone) {
                Ok(found) if found.is_dir() => fs::remove_dir_all(&gone).with_context(looking)?,
                Ok(_) => fs::remove_file(&gone).with_context(looking)?,
                Err(_) => {}
            }
        } else if fs::symlink_metadata(&path).is_ok_and(|it| it.is_dir()) {
            apply_whiteouts(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_layer_deletes_what_an_earlier_one_brought() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("usr/share/doc")).unwrap();
        fs::write(dir.path().join("usr/share/.wh.doc"), "").unwrap();
        fs::write(dir.path().join("usr/kept"), "").unwrap();
        apply_whiteouts(dir.path()).unwrap();
        assert!(!dir.path().join("usr/share/doc").exists());
        assert!(!dir.path().join("usr/share/.wh.doc").exists());
        assert!(dir.path().join("usr/kept").exists());
    }
}
