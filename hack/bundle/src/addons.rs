//! Charts and manifests for Addons: what the operator takes from a bundle, and machines do not.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_yaml::Value;

use crate::digest;
use crate::index::{Artifact, Kind};

/// What entries of Addons have as their operating system: machines do not look at them.
const ANY: &str = "any";
/// The most that the operator takes of manifests, and of a chart, in bytes.
const LARGEST: [u64; 2] = [8 << 20, 32 << 20];
/// More than any `Chart.yaml` has.
const DESCRIPTION: u64 = 1 << 20;

/// An entry to be, and the bytes of its file.
#[derive(Debug)]
pub struct AddonEntry {
    /// The entry, without a signature.
    pub artifact: Artifact,
    /// The file.
    pub bytes: Vec<u8>,
}

/// What `Chart.yaml` says.
#[derive(Debug, Deserialize)]
struct Description {
    name: String,
    version: String,
}

/// The entry of a chart's archive, as `helm package` writes it.
pub fn chart(file: &Path) -> Result<AddonEntry> {
    let bytes = fs::read(file).with_context(|| format!("failed to read {}", file.display()))?;
    let description = description(&bytes).with_context(|| format!("{} is no chart's archive", file.display()))?;
    let Description { name, version } = description;
    ensure!(
        is_name(&name) && is_name(&version),
        "{}: its name {name:?} or version {version:?} cannot be used",
        file.display()
    );
    entry((&name, Kind::Chart, &version), &format!("files/chart-{name}-{version}.tgz"), bytes)
}

/// The entry of these files together, in their order. Each has documents with `apiVersion`, `kind` and `metadata.name`;
/// where they may be templates, that is for the operator to find out.
pub fn manifests(name: &str, version: &str, files: &[PathBuf], is_template: bool) -> Result<AddonEntry> {
    ensure!(is_name(name) && is_name(version), "the name {name:?} or the version {version:?} cannot be used");
    let mut text = String::new();
    for file in files {
        let read = fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
        if !is_template {
            check(&read).with_context(|| format!("{} cannot be applied", file.display()))?;
        }
        if !text.is_empty() {
            text.push_str("---\n");
        }
        text.push_str(&read);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    entry((name, Kind::Manifests, version), &format!("files/manifests-{name}-{version}.yaml"), text.into_bytes())
}

fn entry((name, kind, version): (&str, Kind, &str), path: &str, bytes: Vec<u8>) -> Result<AddonEntry> {
    let most = LARGEST[usize::from(kind == Kind::Chart)];
    let size = bytes.len() as u64;
    ensure!(size <= most, "{name} {version} has {size} bytes, and the operator takes {most} at most: split it");
    let mut artifact = Artifact::new(name, kind, version, "", path, (size, digest::of_bytes(&bytes)));
    ANY.clone_into(&mut artifact.os);
    Ok(AddonEntry { artifact, bytes })
}

fn description(archive: &[u8]) -> Result<Description> {
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    for entry in archive.entries().context("it is no compressed tar")? {
        let entry = entry.context("it is no compressed tar")?;
        let path = entry.path()?.into_owned();
        if path.components().count() == 2 && path.file_name().is_some_and(|name| name == "Chart.yaml") {
            let mut text = String::new();
            entry.take(DESCRIPTION).read_to_string(&mut text)?;
            return serde_yaml::from_str(&text).context("Chart.yaml cannot be read");
        }
    }
    bail!("it has no Chart.yaml in its one directory")
}

fn check(text: &str) -> Result<()> {
    for (index, document) in serde_yaml::Deserializer::from_str(text).enumerate() {
        let number = index + 1;
        let document = Value::deserialize(document).with_context(|| format!("document {number} is no YAML"))?;
        if document.is_null() {
            continue;
        }
        let is_list = document["kind"] == "List";
        for (field, value) in [
            ("apiVersion", &document["apiVersion"]),
            ("kind", &document["kind"]),
            ("metadata.name", &document["metadata"]["name"]),
        ] {
            ensure!(value.is_string() || (is_list && field == "metadata.name"), "document {number} has no {field}");
        }
    }
    Ok(())
}

/// Whether it may be part of a path and of a URL.
fn is_name(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-._+".contains(letter))
}

/// Writes the file of the entry into the bundle's directory.
pub fn write(entry: &AddonEntry, bundle: &Path) -> Result<()> {
    let path = bundle.join(&entry.artifact.path);
    crate::publish::publish(&path, |draft| {
        use std::io::Write;
        let mut file = File::create(draft)?;
        file.write_all(&entry.bytes)?;
        file.flush()?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::{chart, manifests, write};
    use crate::index::{Index, Kind};

    fn archive(path: &str, text: &str) -> Vec<u8> {
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, text.as_bytes()).unwrap();
        archive.into_inner().unwrap().finish().unwrap()
    }

    #[test]
    fn a_chart_says_its_name_and_version_itself() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("any.tgz");
        fs::write(&file, archive("etcd/Chart.yaml", "{apiVersion: v2, name: etcd, version: 1.2.0}")).unwrap();
        let entry = chart(&file).unwrap();
        let made = &entry.artifact;
        assert_eq!((made.name.as_str(), made.version.as_str(), &made.kind), ("etcd", "1.2.0", &Kind::Chart));
        assert!(!made.serves("amd64"), "machines do not take it");
        let mut index = Index::new();
        write(&entry, dir.path()).unwrap();
        index.insert(entry.artifact).unwrap();
        let report = index.write(dir.path()).and_then(|_| crate::verify::verify(dir.path(), |_| {})).unwrap();
        assert_eq!((report.problems, report.unlisted), (vec![], vec![]));
        for (path, text) in [("Chart.yaml", "{name: a, version: '1'}"), ("a/Chart.yaml", "{name: ../a, version: '1'}")]
        {
            fs::write(&file, archive(path, text)).unwrap();
            assert!(chart(&file).is_err(), "{path} {text}");
        }
    }

    #[test]
    fn manifests_are_one_file_and_each_document_is_an_object() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            fs::write(dir.path().join(name), text).unwrap();
            dir.path().join(name)
        };
        let good = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}";
        let (one, two) = (file("1.yaml", good), file("2.yaml", &format!("# x\n---\n{good}\n")));
        let entry = manifests("agent", "1.0", &[one, two], false).unwrap();
        let text = String::from_utf8(entry.bytes).unwrap();
        assert_eq!(text, format!("{good}\n---\n# x\n---\n{good}\n"));
        let bad = file("3.yaml", &format!("{good}\n---\nkind: {{{{ kind }}}}\n"));
        let why = format!("{:#}", manifests("agent", "1.0", std::slice::from_ref(&bad), false).unwrap_err());
        assert!(why.contains("3.yaml cannot be applied: document 2"), "{why}");
        assert!(manifests("agent", "1.0", &[bad], true).is_ok());
        assert!(manifests("a/b", "1.0", &[], false).is_err());
    }
}
