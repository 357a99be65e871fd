//! Images for the metadata cluster's nodes: imported where they have changed, skipped where they are.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::{Metadata, host_node, machine_node};
use crate::place::write;

const DEADLINE: Duration = Duration::from_secs(120);

/// Imports the archives into the host's containerd. Says whether there was anything to import.
pub(super) fn on_host(metadata: &Metadata, archives: &[PathBuf]) -> Result<bool> {
    let node = host_node::describe(metadata)?;
    each(metadata, "host", archives, |archive| {
        let path = archive.display().to_string();
        host_node::ctr(metadata, &node)?.args(["images", "import", path.as_str()]).within(DEADLINE).run()
    })
}

/// Imports the archives into the containerd of the machine, once it answers.
pub(super) fn in_machine(metadata: &Metadata, archives: &[PathBuf]) -> Result<bool> {
    let node = machine_node::describe();
    let ctr = format!("{}/ctr --address {} --namespace k8s.io", node.containerd_bin.display(), node.socket().display());
    let machine = machine_node::find(metadata)?;
    machine.wait()?;
    let waiting = format!("until {ctr} version >/dev/null 2>&1; do sleep 0.1; done");
    let target = machine.ssh_target();
    target.succeed(&waiting, DEADLINE).context("failed to wait for the machine's containerd")?;
    each(metadata, "machine", archives, |archive| {
        target.invocation(&format!("{ctr} images import -")).input_file(archive)?.within(DEADLINE).run()
    })
}

fn each(
    metadata: &Metadata,
    node: &str,
    archives: &[PathBuf],
    import: impl Fn(&Path) -> Result<String>,
) -> Result<bool> {
    let mut changed = false;
    for archive in archives {
        changed |= once(metadata, node, archive, || import(archive))
            .with_context(|| format!("failed to load image {}", archive.display()))?;
    }
    Ok(changed)
}

fn once(metadata: &Metadata, node: &str, archive: &Path, import: impl FnOnce() -> Result<String>) -> Result<bool> {
    let mark = fingerprint(archive)?;
    let file = marks(metadata, node);
    let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if read(&file).get(&name).is_some_and(|known| *known == mark) {
        return Ok(false);
    }
    import()?;
    let mut known = read(&file);
    known.insert(name, mark);
    let text = serde_json::to_string_pretty(&known).context("failed to encode the loaded images")?;
    write(&file, text)?;
    Ok(true)
}

fn marks(metadata: &Metadata, node: &str) -> PathBuf {
    metadata.directory().join(format!("images-{node}.json"))
}

fn read(file: &Path) -> BTreeMap<String, String> {
    fs::read_to_string(file).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Archives are written anew and renamed into place: another content is another file.
fn fingerprint(archive: &Path) -> Result<String> {
    let meta = fs::metadata(archive).with_context(|| format!("failed to read {}", archive.display()))?;
    Ok(format!("{}-{}-{}.{}", meta.size(), meta.ino(), meta.mtime(), meta.mtime_nsec()))
}
