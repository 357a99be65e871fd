//! The artifact bundles: everything that machines take, in one directory with an index of sizes and digests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::cache::{Cache, create_dir, publish};
use crate::images::archive::digest;
use crate::programs::{Component, Programs};
use crate::progress::Progress;

pub mod artifact;
pub mod index;

use artifact::Planned;
use index::{Artifact, Index};

/// Digests by path in the bundle, and what each file was made of: what has not changed is not made again.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Made(BTreeMap<String, Entry>);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    sources: String,
    size: u64,
    sha256: String,
}

/// Brings the bundle in that directory up to date with the programs and images of the components, which must have been
/// built.
pub fn build(
    bundle: &Path,
    components: &[Component],
    cache: &Cache,
    programs: &Programs,
    progress: &Progress,
) -> Result<()> {
    let planned = artifact::all(components, cache, programs);
    // Beside the bundle, since it is nobody else's business.
    let memory = bundle.with_extension("made.json");
    let before = read(&memory);
    let task = progress.counted("artifact bundle", planned.len());
    let mut made = Made::default();
    let mut index = Index::new();
    let mut minors = BTreeMap::new();
    for artifact in planned {
        task.at(&artifact.path);
        minors.extend(artifact.minor.map(|minor| ((artifact.name.clone(), artifact.version.clone()), minor)));
        let entry = bring(&artifact, bundle, &before)?;
        index.artifacts.push(Artifact::new(&artifact, entry.size, &entry.sha256));
        made.0.insert(artifact.path, entry);
        task.advance();
    }
    index.combine(&minors);
    // The index is whole before anything is removed that the old one named.
    write_json(&bundle.join("index.json"), &index)?;
    write_json(&memory, &made)?;
    sweep(bundle, &made.0.keys().map(String::as_str).collect())?;
    task.done();
    Ok(())
}

fn bring(artifact: &Planned, bundle: &Path, before: &Made) -> Result<Entry> {
    let sources = artifact.fingerprint()?;
    let path = bundle.join(&artifact.path);
    let known = before.0.get(&artifact.path).filter(|known| known.sources == sources);
    if let Some(known) = known
        && fs::metadata(&path).is_ok_and(|found| found.len() == known.size)
    {
        return Ok(known.clone());
    }
    publish(&path, |draft| artifact.make(draft))?;
    let size = fs::metadata(&path).with_context(|| format!("failed to look at {}", path.display()))?.len();
    Ok(Entry { sources, size, sha256: digest(&path)? })
}

fn read(memory: &Path) -> Made {
    fs::read(memory).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    publish(path, |draft| {
        let text = serde_json::to_vec_pretty(value)?;
        fs::write(draft, text).with_context(|| format!("failed to write {}", draft.display()))
    })
}

/// Removes files that the index does not name.
fn sweep(bundle: &Path, named: &BTreeSet<&str>) -> Result<()> {
    for part in ["files", "images"] {
        let directory = bundle.join(part);
        create_dir(&directory)?;
        let sweeping = || format!("failed to look through {}", directory.display());
        for entry in fs::read_dir(&directory).with_context(sweeping)? {
            let entry = entry.with_context(sweeping)?;
            let name = format!("{part}/{}", entry.file_name().to_string_lossy());
            if !named.contains(name.as_str()) {
                fs::remove_file(entry.path()).with_context(sweeping)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::artifact::Content;

    fn plan(source: &Path) -> Planned {
        Planned {
            name: "runc".into(),
            version: "1.5.2".into(),
            path: "files/runc-1.5.2-linux-amd64".into(),
            content: Content::File(source.to_owned()),
            minor: None,
        }
    }

    #[test]
    fn an_unchanged_artifact_is_not_made_again_and_a_changed_one_is() {
        let dir = tempfile::tempdir().unwrap();
        let (source, bundle) = (dir.path().join("runc"), dir.path().join("bundle"));
        fs::write(&source, "one").unwrap();
        let first = bring(&plan(&source), &bundle, &Made::default()).unwrap();
        let made = Made([("files/runc-1.5.2-linux-amd64".to_owned(), first.clone())].into());

        fs::write(bundle.join("files/runc-1.5.2-linux-amd64"), "ABC").unwrap();
        fs::remove_file(&source).unwrap();
        fs::write(&source, "three").unwrap();
        let second = bring(&plan(&source), &bundle, &made).unwrap();
        assert_ne!(first.sha256, second.sha256);
        assert_eq!(second.size, 5);
        assert_eq!(fs::read_to_string(bundle.join("files/runc-1.5.2-linux-amd64")).unwrap(), "three");
    }

    #[test]
    fn what_the_index_no_longer_names_goes() {
        let dir = tempfile::tempdir().unwrap();
        create_dir(&dir.path().join("files")).unwrap();
        fs::write(dir.path().join("files/kubelet-1.34.4-linux-amd64"), "").unwrap();
        fs::write(dir.path().join("files/kubelet-1.35.4-linux-amd64"), "").unwrap();
        sweep(dir.path(), &["files/kubelet-1.35.4-linux-amd64"].into()).unwrap();
        assert!(!dir.path().join("files/kubelet-1.34.4-linux-amd64").exists());
        assert!(dir.path().join("files/kubelet-1.35.4-linux-amd64").exists());
    }
}
