//! `index.json`, as machines read it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::{self, is_digest};
use crate::packages::Repository;
use crate::place::is_below;
use crate::publish::publish_json;
use crate::version::{Rank, rank, same};

/// Name of the index in a bundle.
pub const FILE: &str = "index.json";
/// The format that is written, and the only one that is read.
pub const FORMAT_VERSION: u64 = 1;

/// What a bundle holds. Fields that are not known here are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    format_version: u64,
    /// Versions by name that go with each Kubernetes minor, e.g. `1.35`: what a machine takes where no version is asked
    /// for. Kubernetes' own programs and images are not in it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub components: BTreeMap<String, BTreeMap<String, String>>,
    /// Everything that is there, in the order of [`Artifact::key`] once written.
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// One artifact, and how to know that it is the right one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Artifact {
    /// A program's or component's name, e.g. `kubelet`, or an image's without its tag.
    pub name: String,
    /// What the file is.
    pub kind: Kind,
    /// The version; of an image, its tag.
    pub version: String,
    /// Operating system: `linux`; of a package its distribution, e.g. `debian12`.
    #[serde(default = "linux")]
    pub os: String,
    /// Architecture as Kubernetes names it, e.g. `amd64`. Empty: any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arch: String,
    /// The file, below the directory of the index.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// Where it was downloaded from: an upstream URL, or an image's reference.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Of an image from a registry: the digest of its manifest there, e.g. `sha256:abbe...`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifest: String,
    /// Of a chart or of manifests: who has added it, Ed25519 in base64.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub signature: String,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// What an artifact's file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One executable.
    File,
    /// A tar, compressed or not.
    Archive,
    /// An image's archive, as `ctr images import` takes it.
    Image,
    /// A package of the operating system that `os` names; machines take it through its repository.
    Package,
    /// What tells apt of such packages: the list, the signed release, the key.
    Repository,
    /// The archive of a chart, which an Addon installs.
    Chart,
    /// Manifests, which an Addon applies.
    Manifests,
    /// Something that machines do not take by name, and leave alone.
    #[serde(untagged)]
    Other(String),
}

impl Index {
    /// An index of nothing.
    pub fn new() -> Self {
        Self {
            format_version: FORMAT_VERSION,
            components: BTreeMap::new(),
            artifacts: Vec::new(),
            others: BTreeMap::new(),
        }
    }

    /// The index in these bytes, read from `place`. Errors name the place and what is wrong there.
    pub fn parse(bytes: &[u8], place: &str) -> Result<Self> {
        let value: Value = serde_json::from_slice(bytes).with_context(|| format!("{place} is not JSON"))?;
        match value.get("formatVersion").and_then(Value::as_u64) {
            Some(FORMAT_VERSION) => {}
            Some(newer) if newer > FORMAT_VERSION => bail!(
                "{place} has formatVersion {newer}, and the newest that is read here is {FORMAT_VERSION}: use a newer \
                 wright"
            ),
            _ => bail!("{place} has no formatVersion, and must have {FORMAT_VERSION}: is it the index of a bundle?"),
        }
        let index: Self = serde_json::from_value(value).with_context(|| format!("{place} is no index"))?;
        for artifact in &index.artifacts {
            artifact.check().with_context(|| format!("{place}: {artifact} cannot be used"))?;
        }
        Ok(index)
    }

    /// The index of the bundle in that directory.
    pub fn read(bundle: &Path) -> Result<Self> {
        let path = bundle.join(FILE);
        let bytes = fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
        Self::parse(&bytes, &path.display().to_string())
    }

    /// The same, of nothing where no index is yet.
    pub fn read_or_new(bundle: &Path) -> Result<Self> {
        if bundle.join(FILE).exists() { Self::read(bundle) } else { Ok(Self::new()) }
    }

    /// Writes it into the bundle, sorted: the same contents give the same bytes. Returns its SHA-256.
    pub fn write(&mut self, bundle: &Path) -> Result<String> {
        self.artifacts.sort_by(|one, other| one.key().cmp(&other.key()));
        let path = bundle.join(FILE);
        publish_json(&path, self)?;
        digest::of_file(&path)
    }

    /// The artifact of that name, version and architecture.
    pub fn find(&self, name: &str, version: &str, arch: &str) -> Option<&Artifact> {
        let is = |it: &&Artifact| it.name == name && same(&it.version, version) && it.serves(arch);
        self.artifacts.iter().find(is)
    }

    /// Adds an artifact, or describes one anew whose file is the same. Fails if there is another file of that name,
    /// version and architecture, since clusters have frozen its digest.
    pub fn insert(&mut self, artifact: Artifact) -> Result<()> {
        artifact.check()?;
        if let Some(known) = self.artifacts.iter_mut().find(|known| known.key() == artifact.key()) {
            known.check_same(&artifact.sha256)?;
            *known = artifact;
            return Ok(());
        }
        if let Some(other) = self.artifacts.iter().find(|known| known.path == artifact.path) {
            bail!("{artifact} would be at {}, where {other} is", artifact.path);
        }
        self.artifacts.push(artifact);
        Ok(())
    }

    /// Puts these packages, and what tells apt of them, in the place of all that there was of a repository.
    pub fn replace_repository(&mut self, repository: Repository<'_>, artifacts: Vec<Artifact>) -> Result<()> {
        self.artifacts.retain(|artifact| !repository.holds(artifact));
        artifacts.into_iter().try_for_each(|artifact| self.insert(artifact))
    }

    /// Versions of Kubernetes that are there, oldest first.
    pub fn kubernetes_versions(&self) -> Vec<String> {
        let kubelets = self.artifacts.iter().filter(|artifact| artifact.name == "kubelet");
        let mut versions: Vec<String> = kubelets.map(|kubelet| kubelet.version.clone()).collect();
        versions.sort_by(|one, other| rank(one).cmp(&rank(other)));
        versions.dedup();
        versions
    }
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Artifact {
    /// An artifact for Linux.
    pub fn new(name: &str, kind: Kind, version: &str, arch: &str, path: &str, file: (u64, String)) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            version: version.to_owned(),
            os: linux(),
            arch: arch.to_owned(),
            path: path.to_owned(),
            size: file.0,
            sha256: file.1,
            source: String::new(),
            manifest: String::new(),
            signature: String::new(),
            others: BTreeMap::new(),
        }
    }

    /// The same for the machines of a distribution.
    pub fn of_repository(mut self, repository: Repository<'_>) -> Self {
        repository.os.clone_into(&mut self.os);
        repository.arch.clone_into(&mut self.arch);
        self
    }

    /// What it is known by; no two artifacts of an index have the same.
    pub fn key(&self) -> (&str, Rank<'_>, &str, &str) {
        (&self.name, rank(&self.version), &self.os, &self.arch)
    }

    /// Whether machines of that architecture take it.
    pub fn serves(&self, arch: &str) -> bool {
        self.os == "linux" && (self.arch.is_empty() || self.arch == arch)
    }

    /// Whether it is part of a repository of packages, which is replaced as a whole: no cluster has frozen it.
    pub fn is_in_repository(&self) -> bool {
        matches!(self.kind, Kind::Package | Kind::Repository)
    }

    /// Fails if another file has that SHA-256: clusters have frozen the one that is there.
    pub fn check_same(&self, sha256: &str) -> Result<()> {
        let known = &self.sha256;
        ensure!(
            known.eq_ignore_ascii_case(sha256),
            "{self} is in the bundle with sha256 {known}, and this one has {sha256}: a cluster that has the former \
             would refuse the latter (ComponentChanged); give it a version of its own, or remove the former with prune"
        );
        Ok(())
    }

    fn check(&self) -> Result<()> {
        for (field, value) in [("name", &self.name), ("version", &self.version)] {
            ensure!(!value.is_empty(), "{field} is empty");
        }
        ensure!(is_digest(&self.sha256), "sha256 is {:?}, and must be 64 hexadecimal digits", self.sha256);
        ensure!(is_below(&self.path), "path is {:?}, and must be a path below the bundle, without ..", self.path);
        Ok(())
    }
}

impl std::fmt::Display for Artifact {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let arch = if self.arch.is_empty() { "any" } else { &self.arch };
        write!(formatter, "{} {} {}/{arch}", self.name, self.version, self.os)
    }
}

/// Whether the artifact is Kubernetes' own: its version is that of Kubernetes.
pub fn is_kubernetes(name: &str) -> bool {
    ["kubelet", "kubeadm", "kubectl"].contains(&name) || name.starts_with("registry.k8s.io/kube-")
}

/// Whether the artifact is a program of Karmada control planes on machines: no cluster takes it, and it goes with no
/// minor.
pub fn is_of_plane(name: &str) -> bool {
    ["kube-apiserver", "kube-controller-manager"].contains(&name) || name.starts_with("karmada-")
}

fn linux() -> String {
    "linux".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(name: &str, version: &str, arch: &str, digit: &str) -> Artifact {
        let path = format!("files/{name}-{version}-{arch}");
        Artifact::new(name, Kind::File, version, arch, &path, (7, digit.repeat(64)))
    }

    #[test]
    fn an_entry_says_all_that_a_machine_needs() {
        let mut index = Index::new();
        index.insert(artifact("runc", "1.5.2", "amd64", "a")).unwrap();
        assert_eq!(
            serde_json::to_value(&index).unwrap(),
            serde_json::json!({"formatVersion": 1, "artifacts": [{
                "name": "runc", "kind": "file", "version": "1.5.2", "os": "linux", "arch": "amd64",
                "path": "files/runc-1.5.2-amd64", "size": 7, "sha256": "a".repeat(64),
            }]})
        );
    }

    #[test]
    fn the_same_contents_give_the_same_bytes_in_whatever_order_they_came() {
        let write = |order: [&str; 3]| {
            let dir = tempfile::tempdir().unwrap();
            let mut index = Index::new();
            for version in order {
                index.insert(artifact("etcd", version, "amd64", "a")).unwrap();
            }
            let digest = index.write(dir.path()).unwrap();
            let text = fs::read_to_string(dir.path().join(FILE)).unwrap();
            (digest, text.find("3.6.9").unwrap() < text.find("3.6.16").unwrap())
        };
        let (one, other) = (write(["3.6.16", "3.5.9", "3.6.9"]), write(["3.5.9", "3.6.9", "3.6.16"]));
        assert_eq!(one, other);
        assert!(one.1, "3.6.9 comes before 3.6.16");
    }

    #[test]
    fn fields_of_later_versions_are_kept() {
        let repositories = [serde_json::json!({"distribution": "debian12"})];
        let text = serde_json::json!({"formatVersion": 1, "repositories": repositories, "artifacts": [{
            "name": "a", "kind": "packages", "version": "1", "os": "linux", "path": "a", "size": 1,
            "sha256": "a".repeat(64), "licence": "MIT",
        }]});
        let index = Index::parse(text.to_string().as_bytes(), "index.json").unwrap();
        assert_eq!(index.artifacts[0].kind, Kind::Other("packages".into()));
        assert_eq!(serde_json::to_value(&index).unwrap(), text);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_place() {
        let entry = |path: &str, sha256: &str| {
            format!(
                r#"{{"formatVersion": 1, "artifacts": [{{"name": "etcd", "kind": "archive", "version": "3.6.16",
                 "path": "{path}", "size": 1, "sha256": "{sha256}"}}]}}"#
            )
        };
        for (text, said) in [
            ("[".to_owned(), "http://b/index.json is not JSON"),
            (r#"{"artifacts": []}"#.into(), "has no formatVersion, and must have 1"),
            (r#"{"formatVersion": 2}"#.into(), "has formatVersion 2, and the newest that is read here is 1"),
            (entry("../etcd", &"a".repeat(64)), "etcd 3.6.16 linux/any cannot be used: path is \"../etcd\""),
            (entry("etcd", "ab"), "sha256 is \"ab\", and must be 64 hexadecimal digits"),
        ] {
            let error = format!("{:#}", Index::parse(text.as_bytes(), "http://b/index.json").unwrap_err());
            assert!(error.contains(said) && error.contains("http://b/index.json"), "{error}");
        }
    }

    #[test]
    fn another_file_of_a_version_that_is_there_is_refused() {
        let mut index = Index::new();
        index.insert(artifact("etcd", "3.6.16", "amd64", "a")).unwrap();
        index.insert(artifact("etcd", "3.6.16", "arm64", "b")).unwrap();
        index.insert(artifact("etcd", "3.6.16", "amd64", "A")).unwrap();
        let error = index.insert(artifact("etcd", "3.6.16", "amd64", "c")).unwrap_err().to_string();
        assert!(error.contains("ComponentChanged") && error.contains(&"c".repeat(64)), "{error}");
        assert_eq!(index.artifacts.len(), 2);
    }

    #[test]
    fn two_artifacts_have_two_paths() {
        let mut index = Index::new();
        index.insert(artifact("etcd", "3.6.16", "amd64", "a")).unwrap();
        let mut other = artifact("etcd", "3.6.17", "amd64", "b");
        other.path.clone_from(&index.artifacts[0].path);
        assert!(index.insert(other).unwrap_err().to_string().contains("where etcd 3.6.16 linux/amd64 is"));
    }
}
