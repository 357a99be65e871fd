//! Removing from a bundle what is not needed any more.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::index::{Artifact, Index, is_kubernetes};
use crate::place;
use crate::version::{minor, same};

/// What is to stay.
#[derive(Debug, Default)]
pub struct Keep {
    /// Versions of Kubernetes, with the components of their minors. Empty: all.
    pub kubernetes: Vec<String>,
    /// Names and versions of other components, e.g. those that clusters have frozen.
    pub components: Vec<(String, String)>,
}

/// What would be removed.
#[derive(Debug, PartialEq)]
pub struct Plan {
    /// Entries of the index, each with its file.
    pub artifacts: Vec<Artifact>,
    /// Minors of Kubernetes that the table of components has no more.
    pub minors: Vec<String>,
    /// Files that no entry of the index names, removed ones included.
    pub files: Vec<String>,
    after: Index,
}

/// Says what is removed: of Kubernetes and of the components that the index has tables of, all but what is kept; and
/// files that the index does not name. What was added beside them, e.g. images of a network plugin, stays. Fails if
/// something that is to stay is not there.
pub fn plan(bundle: &Path, keep: &Keep) -> Result<Plan> {
    let mut after = Index::read(bundle)?;
    let versions = after.kubernetes_versions();
    for version in &keep.kubernetes {
        let there = if versions.is_empty() { "none".to_owned() } else { versions.join(", ") };
        ensure!(versions.contains(version), "the bundle has no Kubernetes {version}: it has {there}");
    }
    for (name, version) in &keep.components {
        let there = after.artifacts.iter().any(|it| it.name == *name && same(&it.version, version));
        ensure!(there, "the bundle has no {name} {version}");
    }
    let mut removed = Vec::new();
    let mut minors = Vec::new();
    if !keep.kubernetes.is_empty() {
        let tabled: BTreeSet<String> = after.components.values().flat_map(|table| table.keys().cloned()).collect();
        let kept: BTreeSet<String> = keep.kubernetes.iter().filter_map(|version| minor(version)).collect();
        minors = after.components.keys().filter(|minor| !kept.contains(*minor)).cloned().collect();
        after.components.retain(|minor, _| kept.contains(minor));
        let stays = |artifact: &Artifact| {
            let named =
                |(name, version): (&String, &String)| *name == artifact.name && same(version, &artifact.version);
            if is_kubernetes(&artifact.name) {
                return keep.kubernetes.iter().any(|version| same(version, &artifact.version));
            }
            !tabled.contains(&artifact.name)
                || after.components.values().flatten().any(named)
                || keep.components.iter().any(|(name, version)| named((name, version)))
        };
        let (stay, go) = after.artifacts.iter().cloned().partition(stays);
        (after.artifacts, removed) = (stay, go);
    }
    let named: BTreeSet<&str> = after.artifacts.iter().map(|artifact| artifact.path.as_str()).collect();
    let files = place::files(bundle)?.into_iter().filter(|file| !named.contains(file.as_str())).collect();
    Ok(Plan { artifacts: removed, minors, files, after })
}

impl Plan {
    /// Removes it. The index is written first: whoever reads it meanwhile finds all that it names. Returns its SHA-256.
    pub fn apply(mut self, bundle: &Path) -> Result<String> {
        let digest = self.after.write(bundle)?;
        remove(bundle, &self.files)?;
        Ok(digest)
    }
}

/// Removes files of a bundle that its index does not name.
pub fn sweep(bundle: &Path, index: &Index) -> Result<()> {
    let named: BTreeSet<&str> = index.artifacts.iter().map(|artifact| artifact.path.as_str()).collect();
    let left: Vec<String> = place::files(bundle)?.into_iter().filter(|file| !named.contains(file.as_str())).collect();
    remove(bundle, &left)
}

fn remove(bundle: &Path, files: &[String]) -> Result<()> {
    for file in files {
        fs::remove_file(bundle.join(file)).with_context(|| format!("failed to remove {file}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest;
    use crate::index::Kind;
    use crate::verify::{tests::whole, verify};

    fn two_minors(bundle: &Path) {
        whole(bundle, "1.34.4", "3.6.14");
        let mut index = whole(bundle, "1.35.4", "3.6.16");
        fs::write(bundle.join("files/flannel"), "x").unwrap();
        let file = (1, digest::of_bytes(b"x"));
        index.insert(Artifact::new("flannel", Kind::Image, "1", "amd64", "files/flannel", file)).unwrap();
        index.write(bundle).unwrap();
    }

    fn names(plan: &Plan) -> Vec<String> {
        plan.artifacts.iter().map(|artifact| format!("{} {}", artifact.name, artifact.version)).collect()
    }

    fn keep(kubernetes: &[&str], components: &[(&str, &str)]) -> Keep {
        Keep {
            kubernetes: kubernetes.iter().map(|it| (*it).to_owned()).collect(),
            components: components.iter().map(|(name, version)| ((*name).into(), (*version).into())).collect(),
        }
    }

    #[test]
    fn what_is_of_another_kubernetes_goes_and_what_was_added_stays() {
        let dir = tempfile::tempdir().unwrap();
        two_minors(dir.path());
        let plan = plan(dir.path(), &keep(&["1.35.4"], &[])).unwrap();
        assert_eq!(
            names(&plan),
            [
                "etcd 3.6.14",
                "kubeadm 1.34.4",
                "kubectl 1.34.4",
                "kubelet 1.34.4",
                "registry.k8s.io/kube-apiserver v1.34.4",
                "registry.k8s.io/kube-controller-manager v1.34.4",
                "registry.k8s.io/kube-proxy v1.34.4",
                "registry.k8s.io/kube-scheduler v1.34.4",
            ]
        );
        assert_eq!((plan.minors.as_slice(), plan.files.len()), (["1.34".to_owned()].as_slice(), 8));
        plan.apply(dir.path()).unwrap();
        let report = verify(dir.path(), |_| {}).unwrap();
        assert_eq!((report.artifacts, report.problems, report.unlisted), (15, vec![], vec![]));
    }

    #[test]
    fn a_frozen_component_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        two_minors(dir.path());
        let plan = plan(dir.path(), &keep(&["1.35.4"], &[("etcd", "3.6.14")])).unwrap();
        assert!(!names(&plan).contains(&"etcd 3.6.14".to_owned()), "{plan:?}");
    }

    #[test]
    fn without_versions_only_files_that_nothing_names_go() {
        let dir = tempfile::tempdir().unwrap();
        two_minors(dir.path());
        fs::write(dir.path().join("files/.kubelet.draft"), "").unwrap();
        fs::write(dir.path().join("bundle.lock"), "").unwrap();
        let plan = plan(dir.path(), &Keep::default()).unwrap();
        assert_eq!((names(&plan), plan.files.as_slice()), (vec![], ["files/.kubelet.draft".to_owned()].as_slice()));
        plan.apply(dir.path()).unwrap();
        assert!(dir.path().join("bundle.lock").exists());
        assert!(verify(dir.path(), |_| {}).unwrap().unlisted.is_empty());
    }

    #[test]
    fn what_is_to_stay_must_be_there() {
        let dir = tempfile::tempdir().unwrap();
        two_minors(dir.path());
        for (wrong, said) in [
            (keep(&["1.36.0"], &[]), "no Kubernetes 1.36.0: it has 1.34.4, 1.35.4"),
            (keep(&[], &[("etcd", "3.5.0")]), "no etcd 3.5.0"),
        ] {
            assert!(plan(dir.path(), &wrong).unwrap_err().to_string().contains(said));
        }
    }
}
