//! Whether a bundle is what its index says, and whether machines find in it all that they take.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::digest;
use crate::index::{self, Artifact, Index};
use crate::version::minor;
use crate::{packages, place};

/// What machines take beside Kubernetes' own, of whatever version goes with its minor.
pub const COMPONENTS: [&str; 7] = [
    "clusterwright.dev/busybox",
    "cni-plugins",
    "containerd",
    "etcd",
    "registry.k8s.io/coredns/coredns",
    "registry.k8s.io/pause",
    "runc",
];
/// Kubernetes' own programs.
pub const PROGRAMS: [&str; 3] = ["kubeadm", "kubectl", "kubelet"];
/// Kubernetes' own images; their version is that of Kubernetes with a `v`.
pub const IMAGES: [&str; 4] = [
    "registry.k8s.io/kube-apiserver",
    "registry.k8s.io/kube-controller-manager",
    "registry.k8s.io/kube-proxy",
    "registry.k8s.io/kube-scheduler",
];

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    /// How many artifacts there are.
    pub artifacts: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// Versions of Kubernetes, oldest first.
    pub kubernetes: Vec<String>,
    /// SHA-256 of the index, for `spec.artifacts.indexSHA256`.
    pub index_sha256: String,
    /// What is wrong. Empty: machines can be installed from it.
    pub problems: Vec<String>,
    /// Files that the index does not name: `prune` removes them.
    pub unlisted: Vec<String>,
}

/// Reads every file of the bundle; `at` is told which one is next. Fails if there is no index that can be read.
pub fn verify(bundle: &Path, mut at: impl FnMut(&Artifact)) -> Result<Report> {
    let index = Index::read(bundle)?;
    let mut problems = Vec::new();
    for artifact in &index.artifacts {
        at(artifact);
        problems.extend(problem(bundle, artifact)?);
    }
    problems.extend(lacking(&index));
    problems.extend(packages::lacking(bundle, &index)?);
    let named: BTreeSet<&str> = index.artifacts.iter().map(|artifact| artifact.path.as_str()).collect();
    Ok(Report {
        artifacts: index.artifacts.len(),
        bytes: index.artifacts.iter().map(|artifact| artifact.size).sum(),
        kubernetes: index.kubernetes_versions(),
        index_sha256: digest::of_file(&bundle.join(index::FILE))?,
        problems,
        unlisted: place::files(bundle)?.into_iter().filter(|file| !named.contains(file.as_str())).collect(),
    })
}

/// What is wrong with one file.
pub fn problem(bundle: &Path, artifact: &Artifact) -> Result<Option<String>> {
    let path = bundle.join(&artifact.path);
    let Ok(found) = fs::metadata(&path) else {
        return Ok(Some(format!("{artifact}: {} is missing", artifact.path)));
    };
    if found.len() != artifact.size {
        let (is, wanted) = (found.len(), artifact.size);
        return Ok(Some(format!("{artifact}: {} has {is} bytes, and must have {wanted}", artifact.path)));
    }
    let got = digest::of_file(&path)?;
    let same = got.eq_ignore_ascii_case(&artifact.sha256);
    Ok((!same).then(|| format!("{artifact}: {} has sha256 {got}, and must have {}", artifact.path, artifact.sha256)))
}

/// What machines would not find, for each version of Kubernetes and each architecture that is there.
pub fn lacking(index: &Index) -> Vec<String> {
    let mut found = Vec::new();
    let kubelets = index.artifacts.iter().filter(|artifact| artifact.name == "kubelet");
    for (kubernetes, arch) in kubelets.map(|kubelet| (&kubelet.version, &kubelet.arch)).collect::<BTreeSet<_>>() {
        let lacks = |what: &str| format!("machines of Kubernetes {kubernetes} on linux/{arch} do not find {what}");
        for program in PROGRAMS {
            if index.find(program, kubernetes, arch).is_none() {
                found.push(lacks(&format!("{program} {kubernetes}")));
            }
        }
        for image in IMAGES {
            if index.find(image, kubernetes, arch).is_none() {
                found.push(lacks(&format!("{image} v{kubernetes}")));
            }
        }
        let table = minor(kubernetes).and_then(|minor| index.components.get(&minor));
        for component in COMPONENTS {
            let version = table.and_then(|table| table.get(component));
            let there = match version {
                Some(version) => index.find(component, version, arch).is_some(),
                None => index.artifacts.iter().any(|it| it.name == component && it.serves(arch)),
            };
            if !there {
                let version = version.map_or("of any version", String::as_str);
                found.push(lacks(&format!("{component} {version}")));
            }
        }
    }
    found
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::index::Kind;

    /// A bundle with all that machines of one version of Kubernetes take, each file with its own name in it.
    pub fn whole(bundle: &Path, kubernetes: &str, etcd: &str) -> Index {
        let mut index = Index::read_or_new(bundle).unwrap();
        let mut add = |name: &str, version: &str| {
            let path = place::file(&name.replace('/', "_"), version, "amd64", "");
            fs::create_dir_all(bundle.join("files")).unwrap();
            fs::write(bundle.join(&path), name).unwrap();
            let file = (name.len() as u64, digest::of_bytes(name.as_bytes()));
            index.insert(Artifact::new(name, Kind::File, version, "amd64", &path, file)).unwrap();
        };
        for program in PROGRAMS {
            add(program, kubernetes);
        }
        for image in IMAGES {
            add(image, &format!("v{kubernetes}"));
        }
        for component in COMPONENTS {
            add(component, if component == "etcd" { etcd } else { "1.0.0" });
        }
        let table = COMPONENTS.map(|name| (name.to_owned(), if name == "etcd" { etcd } else { "1.0.0" }.to_owned()));
        index.components.insert(minor(kubernetes).unwrap(), table.into());
        index.write(bundle).unwrap();
        index
    }

    #[test]
    fn a_whole_bundle_has_no_problems() {
        let dir = tempfile::tempdir().unwrap();
        whole(dir.path(), "1.35.4", "3.6.16");
        let report = verify(dir.path(), |_| {}).unwrap();
        assert_eq!((report.problems.as_slice(), report.unlisted.as_slice()), ([].as_slice(), [].as_slice()));
        assert_eq!((report.artifacts, report.kubernetes), (14, vec!["1.35.4".to_owned()]));
    }

    #[test]
    fn files_that_differ_or_are_gone_or_unknown_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        whole(dir.path(), "1.35.4", "3.6.16");
        let file = |name: &str| dir.path().join(format!("files/{name}-linux-amd64"));
        fs::write(file("kubelet-1.35.4"), "KUBELET").unwrap();
        fs::write(file("kubeadm-1.35.4"), "kube").unwrap();
        fs::remove_file(file("runc-1.0.0")).unwrap();
        fs::write(dir.path().join("files/left"), "").unwrap();
        let report = verify(dir.path(), |_| {}).unwrap();
        let [kubeadm, kubelet, runc] = &report.problems[..] else { panic!("{:?}", report.problems) };
        assert!(kubeadm.ends_with("kubeadm-1.35.4-linux-amd64 has 4 bytes, and must have 7"), "{kubeadm}");
        assert!(kubelet.contains("kubelet-1.35.4-linux-amd64 has sha256 "), "{kubelet}");
        assert_eq!(runc, "runc 1.0.0 linux/amd64: files/runc-1.0.0-linux-amd64 is missing");
        assert_eq!(report.unlisted, ["files/left"]);
    }

    #[test]
    fn what_machines_would_not_find_is_reported_with_the_version_of_the_table() {
        let dir = tempfile::tempdir().unwrap();
        let mut index = whole(dir.path(), "1.35.4", "3.6.16");
        index.components.get_mut("1.35").unwrap().insert("etcd".into(), "3.6.17".into());
        index.artifacts.retain(|artifact| artifact.name != "registry.k8s.io/kube-proxy");
        let lacks = |what: &str| format!("machines of Kubernetes 1.35.4 on linux/amd64 do not find {what}");
        assert_eq!(lacking(&index), [lacks("registry.k8s.io/kube-proxy v1.35.4"), lacks("etcd 3.6.17")]);
    }

    #[test]
    fn the_list_is_that_of_preflight() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../executor/ansible/roles/preflight/vars/main.yml");
        let text = fs::read_to_string(path).unwrap();
        let wanted = text.lines().filter(|line| line.contains("'version':")).map(|line| {
            let name = line.split("'name': ").nth(1).unwrap().split(", 'version'").next().unwrap();
            name.replace("kube_image_repo ~ '", "registry.k8s.io")
                .replace("smoke_test_image", "clusterwright.dev/busybox")
                .replace('\'', "")
        });
        let wanted: BTreeSet<String> = wanted.collect();
        let known = COMPONENTS.iter().chain(&PROGRAMS).chain(&IMAGES).map(|name| (*name).to_owned());
        assert_eq!(wanted, known.collect());
    }
}
