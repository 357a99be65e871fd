//! What is in the bundle. Names and layouts equal those of the projects' own releases, so that released files can
//! take these ones' places.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::cache::Cache;
use crate::images::tree::{Tree, file_fingerprint};
use crate::images::{NEWER_PAUSE, architecture, scratch};
use crate::programs::{Component, Programs};

/// One artifact to be.
#[derive(Debug)]
pub struct Planned {
    /// Its name in the index.
    pub name: String,
    /// Its version in the index.
    pub version: String,
    /// Its place in the bundle.
    pub path: String,
    /// What it is made of.
    pub content: Content,
    /// The minor of Kubernetes that it goes with in place of what goes with all others.
    pub minor: Option<&'static str>,
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

impl Content {
    /// The word for it in the index.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::File(_) => "file",
            Self::Archive(_) => "archive",
            Self::Image(_) => "image",
        }
    }
}

impl Planned {
    /// A text that changes when the artifact must be made again.
    pub fn fingerprint(&self) -> Result<String> {
        match &self.content {
            Content::File(source) | Content::Image(source) => file_fingerprint(source),
            Content::Archive(tree) => tree.fingerprint(),
        }
    }

    /// Makes the artifact.
    pub fn make(&self, into: &Path) -> Result<()> {
        let making = || format!("failed to make {}", self.path);
        match &self.content {
            Content::File(source) | Content::Image(source) => {
                // The same bytes twice on one disk would cost a gigabyte.
                if fs::hard_link(source, into).is_err() {
                    fs::copy(source, into).with_context(making)?;
                }
                Ok(())
            }
            Content::Archive(tree) => {
                let file = File::create(into).with_context(making)?;
                let mut packed = GzEncoder::new(file, Compression::fast());
                tree.write(&mut packed)?;
                packed.finish().and_then(|mut file| file.flush()).with_context(making)
            }
        }
    }
}

/// Every artifact of these components, in the order of the index.
pub fn all(components: &[Component], cache: &Cache, programs: &Programs) -> Vec<Planned> {
    let mut artifacts: Vec<Planned> = components.iter().flat_map(|it| of_component(it, programs)).collect();
    artifacts.extend(scratch::references(components).into_iter().map(|image| Planned {
        path: format!("images/{}", image.file()),
        content: Content::Image(image.archive(cache)),
        minor: (image == NEWER_PAUSE.0).then_some(NEWER_PAUSE.1),
        name: image.name.to_owned(),
        version: image.version.into_owned(),
    }));
    artifacts
}

fn of_component(component: &Component, programs: &Programs) -> Vec<Planned> {
    let version = component.version;
    let platform = format!("linux-{}", architecture());
    let file = |name: &str| Planned {
        name: name.to_owned(),
        version: version.to_owned(),
        path: format!("files/{name}-{version}-{platform}"),
        content: Content::File(programs.path(component, name)),
        minor: component.minor,
    };
    let archive = |ending: &str, tree: Tree| Planned {
        name: component.name.to_owned(),
        version: version.to_owned(),
        path: format!("files/{}-{version}-{platform}.{ending}", component.name),
        content: Content::Archive(tree),
        minor: component.minor,
    };
    match component.name {
        "kubernetes" => ["kubelet", "kubeadm", "kubectl"].map(file).into(),
        "runc" => vec![file("runc")],
        "containerd" => vec![archive("tar.gz", under("bin", component, programs))],
        "etcd" => {
            vec![archive("tar.gz", under(&format!("etcd-v{version}-{platform}"), component, programs))]
        }
        "cni-plugins" => {
            let mut tree = Tree::new();
            for (name, _) in component.programs {
                tree.program(name, programs.path(component, name));
            }
            vec![archive("tgz", tree)]
        }
        // CoreDNS comes as an image only, and an S3 server is no part of a cluster.
        _ => Vec::new(),
    }
}

fn under(directory: &str, component: &Component, programs: &Programs) -> Tree {
    let mut tree = Tree::new();
    tree.directory(directory, 0o755, 0);
    for (name, _) in component.programs {
        tree.program(&format!("{directory}/{name}"), programs.path(component, name));
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::{CHANGES, COMPONENTS, UPGRADES};

    fn planned(components: &[Component]) -> Vec<Planned> {
        let cache = Cache::at("/cache");
        all(components, &cache, &Programs::new(None, cache.programs()))
    }

    fn names(components: &[Component]) -> Vec<String> {
        planned(components).iter().map(|it| format!("{}:{}", it.name, it.version)).collect()
    }

    #[test]
    fn the_bundle_has_all_that_machines_take() {
        let names = names(COMPONENTS);
        for wanted in [
            "kubelet:1.35.4",
            "kubeadm:1.35.4",
            "kubectl:1.35.4",
            "runc:1.5.2",
            "containerd:2.4.2",
            "etcd:3.6.16",
            "cni-plugins:1.9.1",
            "registry.k8s.io/kube-apiserver:v1.35.4",
            "registry.k8s.io/kube-controller-manager:v1.35.4",
            "registry.k8s.io/kube-scheduler:v1.35.4",
            "registry.k8s.io/kube-proxy:v1.35.4",
            "registry.k8s.io/coredns/coredns:v1.14.7",
            "registry.k8s.io/pause:3.10.1",
            "clusterwright.dev/busybox:1.35",
        ] {
            assert!(names.iter().any(|it| it == wanted), "{wanted} is not among {names:?}");
        }
    }

    #[test]
    fn the_bundle_of_upgrades_has_other_versions_beside_all_of_the_labs() {
        let (labs, upgrades) = (names(COMPONENTS), names(&[COMPONENTS, UPGRADES, CHANGES].concat()));
        assert!(labs.iter().all(|it| upgrades.contains(it)), "{labs:?} are not all among {upgrades:?}");
        let mut older: Vec<&str> = upgrades.iter().filter(|it| !labs.contains(it)).map(String::as_str).collect();
        older.sort_unstable();
        let kubernetes = ["1.34.3", "1.34.4", "1.36.3"].iter().flat_map(|version| {
            let programs = ["kubeadm", "kubectl", "kubelet"].map(|name| format!("{name}:{version}"));
            let images = ["apiserver", "controller-manager", "proxy", "scheduler"];
            let images = images.map(|name| format!("registry.k8s.io/kube-{name}:v{version}"));
            programs.into_iter().chain(images)
        });
        let mut wanted: Vec<String> = kubernetes.collect();
        wanted.extend(["etcd:3.6.14".to_owned(), "registry.k8s.io/pause:3.10.2".to_owned()]);
        wanted.sort_unstable();
        assert_eq!(older, wanted);
    }

    #[test]
    fn no_two_artifacts_have_one_place() {
        let planned = planned(&[COMPONENTS, UPGRADES, CHANGES].concat());
        let places: std::collections::BTreeSet<&str> = planned.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(places.len(), planned.len());
    }

    #[test]
    fn an_archive_unpacks_as_a_release_does() {
        let dir = tempfile::tempdir().unwrap();
        let programs = Programs::new(None, dir.path().to_owned());
        for component in COMPONENTS {
            for (name, _) in component.programs {
                let path = programs.path(component, name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, *name).unwrap();
            }
        }
        let artifacts = all(COMPONENTS, &Cache::at(dir.path()), &programs);
        let etcd = artifacts.iter().find(|it| it.name == "etcd").unwrap();
        let made = dir.path().join("etcd.tar.gz");
        etcd.make(&made).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(File::open(made).unwrap()));
        let entries: Vec<(String, u32)> = archive
            .entries()
            .unwrap()
            .map(|it| it.unwrap())
            .map(|it| (it.path().unwrap().to_string_lossy().into_owned(), it.header().mode().unwrap()))
            .collect();
        let top = format!("etcd-v3.6.16-linux-{}", architecture());
        assert_eq!(entries[0], (format!("{top}/"), 0o755));
        assert!(entries.contains(&(format!("{top}/etcdctl"), 0o755)), "{entries:?}");
    }
}
