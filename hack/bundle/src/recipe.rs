//! Artifacts that are made of programs on this machine. Names and layouts equal those of the projects' own releases, so
//! that either can take the other's place.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::digest;
use crate::index::{Artifact, Kind};
use crate::place;
use crate::publish::publish;
use crate::tree::{Tree, file_fingerprint};

/// The components whose programs can be put into a bundle.
pub const COMPONENTS: [&str; 6] = ["cni-plugins", "containerd", "etcd", "karmada", "kubernetes", "runc"];

/// One artifact to be.
#[derive(Debug)]
pub struct Recipe {
    /// Its name in the index.
    pub name: String,
    /// Its version in the index.
    pub version: String,
    /// The architecture of its programs, e.g. `amd64`.
    pub arch: String,
    /// Its place in the bundle.
    pub path: String,
    /// What it is made of.
    pub content: Content,
}

/// How a file that is taken as it is comes into the bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// As a copy of its own.
    Copy,
    /// As a second name of the same file where that can be: nobody may write to it then, but the bytes are there once.
    Link,
}

/// What an artifact is made of.
#[derive(Debug)]
pub enum Content {
    /// One executable.
    File(PathBuf),
    /// A compressed tar.
    Archive(Tree),
    /// An image's archive.
    Image(PathBuf),
}

impl Recipe {
    /// A text that changes when the artifact must be made again.
    pub fn fingerprint(&self) -> Result<String> {
        match &self.content {
            Content::File(source) | Content::Image(source) => file_fingerprint(source),
            Content::Archive(tree) => tree.fingerprint(),
        }
    }

    /// Makes the artifact in the bundle.
    pub fn make(&self, bundle: &Path, take: Take) -> Result<Artifact> {
        let path = bundle.join(&self.path);
        publish(&path, |draft| self.write(draft, take)).with_context(|| format!("failed to make {}", self.path))?;
        let size = fs::metadata(&path).with_context(|| format!("failed to look at {}", path.display()))?.len();
        Ok(self.artifact(size, digest::of_file(&path)?))
    }

    /// The entry of the artifact that was made.
    pub fn artifact(&self, size: u64, sha256: String) -> Artifact {
        let kind = match self.content {
            Content::File(_) => Kind::File,
            Content::Archive(_) => Kind::Archive,
            Content::Image(_) => Kind::Image,
        };
        Artifact::new(&self.name, kind, &self.version, &self.arch, &self.path, (size, sha256))
    }

    fn write(&self, into: &Path, take: Take) -> Result<()> {
        match &self.content {
            Content::File(source) | Content::Image(source) => {
                if take == Take::Copy || fs::hard_link(source, into).is_err() {
                    fs::copy(source, into).with_context(|| format!("failed to copy {}", source.display()))?;
                }
                Ok(())
            }
            Content::Archive(tree) => {
                let mut packed = GzEncoder::new(File::create(into)?, Compression::fast());
                tree.write(&mut packed)?;
                packed.finish()?.flush()?;
                Ok(())
            }
        }
    }
}

/// The artifacts of a component, of its programs by name. None: machines take nothing of it from files.
pub fn of_programs(component: &str, version: &str, arch: &str, programs: &[(String, PathBuf)]) -> Vec<Recipe> {
    let recipe = |name: &str, ending: &str, content: Content| Recipe {
        name: name.to_owned(),
        version: version.to_owned(),
        arch: arch.to_owned(),
        path: place::file(name, version, arch, ending),
        content,
    };
    let files = |names: &[&str]| -> Vec<Recipe> {
        let wanted = programs.iter().filter(|(name, _)| names.contains(&name.as_str()));
        wanted.map(|(name, source)| recipe(name, "", Content::File(source.clone()))).collect()
    };
    let archive =
        |ending: &str, directory: &str| vec![recipe(component, ending, Content::Archive(below(directory, programs)))];
    match component {
        // The last two are for Karmada control planes on machines; those of clusters run in Pods, of images.
        "kubernetes" => files(&["kubelet", "kubeadm", "kubectl", "kube-apiserver", "kube-controller-manager"]),
        "karmada" => programs.iter().map(|(name, source)| recipe(name, "", Content::File(source.clone()))).collect(),
        "runc" => files(&["runc"]),
        "containerd" => archive(".tar.gz", "bin"),
        "etcd" => archive(".tar.gz", &format!("etcd-v{version}-linux-{arch}")),
        "cni-plugins" => archive(".tgz", ""),
        _ => Vec::new(),
    }
}

/// The programs in that directory of an archive, or at its top.
fn below(directory: &str, programs: &[(String, PathBuf)]) -> Tree {
    let mut tree = Tree::new();
    if !directory.is_empty() {
        tree.directory(directory, 0o755, 0);
    }
    for (name, source) in programs {
        tree.program(&format!("{directory}/{name}"), source);
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths and modes in the archive of a component whose programs hold their own names.
    fn entries(component: &str, version: &str, names: &[&str]) -> Vec<(String, u32)> {
        let dir = tempfile::tempdir().unwrap();
        let program = |name: &&str| {
            fs::write(dir.path().join(name), name).unwrap();
            ((*name).to_owned(), dir.path().join(name))
        };
        let programs: Vec<_> = names.iter().map(program).collect();
        let recipe = of_programs(component, version, "arm64", &programs).remove(0);
        let made = recipe.make(&dir.path().join("bundle"), Take::Copy).unwrap();
        assert_eq!(made.kind, Kind::Archive);
        let file = File::open(dir.path().join("bundle").join(&made.path)).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
        let entries = archive.entries().unwrap().map(|it| it.unwrap());
        entries.map(|it| (it.path().unwrap().to_string_lossy().into_owned(), it.header().mode().unwrap())).collect()
    }

    #[test]
    fn archives_unpack_as_releases_do() {
        let of = |path: &str| (path.to_owned(), 0o755);
        assert_eq!(
            entries("etcd", "3.6.16", &["etcd", "etcdctl"]),
            [
                of("etcd-v3.6.16-linux-arm64/"),
                of("etcd-v3.6.16-linux-arm64/etcd"),
                of("etcd-v3.6.16-linux-arm64/etcdctl")
            ]
        );
        assert_eq!(entries("containerd", "2.4.2", &["ctr"]), [of("bin/"), of("bin/ctr")]);
        assert_eq!(entries("cni-plugins", "1.9.1", &["bridge"]), [of("bridge")]);
    }

    #[test]
    fn a_copy_does_not_change_with_what_it_was_made_of() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("runc");
        fs::write(&source, "one").unwrap();
        let recipe = of_programs("runc", "1.5.2", "amd64", &[("runc".to_owned(), source.clone())]).remove(0);
        let made = recipe.make(dir.path(), Take::Copy).unwrap();
        fs::write(&source, "two").unwrap();
        assert_eq!(digest::of_file(&dir.path().join(&made.path)).unwrap(), made.sha256);
    }

    #[test]
    fn of_kubernetes_come_the_programs_that_run_on_machines() {
        let programs = ["kubectl", "kube-apiserver", "kube-scheduler", "kubelet"]
            .map(|name| (name.to_owned(), PathBuf::from(name)));
        let recipes = of_programs("kubernetes", "1.35.4", "amd64", &programs);
        let paths: Vec<&str> = recipes.iter().map(|recipe| recipe.path.as_str()).collect();
        let expected = ["kubectl", "kube-apiserver", "kubelet"].map(|name| format!("files/{name}-1.35.4-linux-amd64"));
        assert_eq!(paths, expected);
    }

    #[test]
    fn of_karmada_come_all_programs_each_by_itself() {
        let programs = ["karmada-scheduler", "karmada-webhook"].map(|name| (name.to_owned(), PathBuf::from(name)));
        let recipes = of_programs("karmada", "1.18.2", "amd64", &programs);
        let made: Vec<_> = recipes.iter().map(|it| (it.name.as_str(), it.version.as_str(), it.path.as_str())).collect();
        let expected = [
            ("karmada-scheduler", "1.18.2", "files/karmada-scheduler-1.18.2-linux-amd64"),
            ("karmada-webhook", "1.18.2", "files/karmada-webhook-1.18.2-linux-amd64"),
        ];
        assert_eq!(made, expected);
    }

    #[test]
    fn every_component_that_is_named_has_an_artifact() {
        for component in COMPONENTS {
            let programs = ["kubelet", "runc"].map(|name| (name.to_owned(), PathBuf::from(name)));
            assert!(!of_programs(component, "1.0.0", "amd64", &programs).is_empty(), "{component}");
        }
    }
}
