//! Images for the metadata cluster's nodes: imported where they have changed, skipped where they are.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use super::{Metadata, host_node, machine_node};
use crate::place::write;

const DEADLINE: Duration = Duration::from_secs(120);

/// Imports an archive into both nodes' containerd, unless that very file was imported there before.
pub(super) fn load(metadata: &Metadata, archive: &Path) -> Result<()> {
    let mark = fingerprint(archive)?;
    let on_host = || {
        once(metadata, "host", archive, &mark, || {
            let node = host_node::describe(metadata)?;
            let path = archive.display().to_string();
            host_node::ctr(metadata, &node)?
                .args(["images", "import", path.as_str()])
                .within(DEADLINE)
                .run()
        })
    };
    let in_machine = || {
        once(metadata, "machine", archive, &mark, || {
            let node = machine_node::describe();
            let command = format!(
                "{}/ctr --address {} --namespace k8s.io images import -",
                node.containerd_bin.display(),
                node.socket().display()
            );
            let target = machine_node::find(metadata)?.ssh_target();
            target
                .invocation(&command)
                .input_file(archive)?
                .within(DEADLINE)
                .run()
        })
    };
    thread::scope(|scope| {
        let machine = scope.spawn(in_machine);
        on_host()?;
        machine.join().map_err(|_| anyhow!("the import's thread ended"))?
    })
    .with_context(|| format!("failed to load image {}", archive.display()))
}

fn once(
    metadata: &Metadata,
    node: &str,
    archive: &Path,
    mark: &str,
    import: impl FnOnce() -> Result<String>,
) -> Result<()> {
    let file = marks(metadata, node);
    let name = archive
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    if read(&file).get(&name).is_some_and(|known| known == mark) {
        return Ok(());
    }
    import()?;
    let mut known = read(&file);
    known.insert(name, mark.to_owned());
    let text = serde_json::to_string_pretty(&known).context("failed to encode the loaded images")?;
    write(&file, text)
}

fn marks(metadata: &Metadata, node: &str) -> PathBuf {
    metadata.directory().join(format!("images-{node}.json"))
}

fn read(file: &Path) -> BTreeMap<String, String> {
    fs::read_to_string(file)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default()
}

/// Archives are written anew and renamed into place: another content is another file.
fn fingerprint(archive: &Path) -> Result<String> {
    let meta = fs::metadata(archive).with_context(|| format!("failed to read {}", archive.display()))?;
    Ok(format!(
        "{}-{}-{}.{}",
        meta.size(),
        meta.ino(),
        meta.mtime(),
        meta.mtime_nsec()
    ))
}
