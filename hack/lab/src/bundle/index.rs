//! The index as machines read it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::artifact::Planned;
use crate::images::architecture;

/// `index.json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Rises when readers must change.
    pub format_version: u32,
    /// Versions by name that go with each Kubernetes minor, e.g. `1.35`: what a machine takes where no version is asked
    /// for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub components: BTreeMap<String, BTreeMap<String, String>>,
    /// Everything that is there.
    pub artifacts: Vec<Artifact>,
}

impl Index {
    /// An index of nothing.
    pub fn new() -> Self {
        Self { format_version: 1, components: BTreeMap::new(), artifacts: Vec::new() }
    }

    /// Says which of what is there goes with each Kubernetes minor that is there: what is of that minor, and otherwise
    /// what is of none. `minors` are those that artifacts are of, by name and version.
    pub fn combine(&mut self, minors: &BTreeMap<(String, String), &str>) {
        let kubernetes = |artifact: &&Artifact| {
            let name = artifact.name.as_str();
            ["kubelet", "kubeadm", "kubectl"].contains(&name) || name.starts_with("registry.k8s.io/kube-")
        };
        let others: Vec<&Artifact> = self.artifacts.iter().filter(|artifact| !kubernetes(artifact)).collect();
        let of = |wanted: Option<&str>| -> BTreeMap<String, String> {
            let minor = |it: &Artifact| minors.get(&(it.name.clone(), it.version.clone())).copied();
            let these = others.iter().filter(|artifact| minor(artifact) == wanted);
            these.map(|artifact| (artifact.name.clone(), artifact.version.clone())).collect()
        };
        let kubelets = self.artifacts.iter().filter(|artifact| artifact.name == "kubelet");
        let there = kubelets.filter_map(|kubelet| Some(kubelet.version.rsplit_once('.')?.0.to_owned()));
        let with = |minor: &str| of(None).into_iter().chain(of(Some(minor))).collect();
        self.components = there.map(|minor| (minor.clone(), with(&minor))).collect();
    }
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

/// One artifact and how to know that it is the right one.
#[derive(Debug, Serialize)]
pub struct Artifact {
    name: String,
    kind: &'static str,
    version: String,
    os: &'static str,
    arch: &'static str,
    path: String,
    size: u64,
    sha256: String,
}

impl Artifact {
    /// The entry of an artifact that was made.
    pub fn new(planned: &Planned, size: u64, sha256: &str) -> Self {
        Self {
            name: planned.name.clone(),
            kind: planned.content.kind(),
            version: planned.version.clone(),
            os: "linux",
            arch: architecture(),
            path: planned.path.clone(),
            size,
            sha256: sha256.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::artifact::Content;

    fn planned(name: &str, version: &str) -> Planned {
        Planned {
            name: name.into(),
            version: version.into(),
            path: format!("files/{name}"),
            content: Content::File("/cache/file".into()),
            minor: None,
        }
    }

    #[test]
    fn the_index_says_which_versions_go_with_each_kubernetes_minor() {
        let mut index = Index::new();
        for (name, version) in [
            ("kubelet", "1.35.4"),
            ("kubelet", "1.34.4"),
            ("registry.k8s.io/kube-proxy", "v1.35.4"),
            ("etcd", "3.6.16"),
            ("etcd", "3.6.14"),
            ("registry.k8s.io/pause", "3.10.1"),
        ] {
            index.artifacts.push(Artifact::new(&planned(name, version), 7, "ab"));
        }
        index.combine(&[(("etcd".to_owned(), "3.6.14".to_owned()), "1.34")].into());
        let with = |etcd: &str| serde_json::json!({"etcd": etcd, "registry.k8s.io/pause": "3.10.1"});
        assert_eq!(
            serde_json::to_value(&index).unwrap()["components"],
            serde_json::json!({"1.34": with("3.6.14"), "1.35": with("3.6.16")})
        );
    }

    #[test]
    fn an_entry_says_all_that_a_machine_needs() {
        let planned = Planned {
            name: "registry.k8s.io/pause".into(),
            version: "3.10.1".into(),
            path: "images/pause-3.10.1-linux-amd64.tar".into(),
            content: Content::Image("/cache/pause.tar".into()),
            minor: None,
        };
        let mut index = Index::new();
        index.artifacts.push(Artifact::new(&planned, 7, "ab"));
        assert_eq!(
            serde_json::to_value(&index).unwrap(),
            serde_json::json!({"formatVersion": 1, "artifacts": [{
                "name": "registry.k8s.io/pause", "kind": "image", "version": "3.10.1", "os": "linux",
                "arch": architecture(), "path": "images/pause-3.10.1-linux-amd64.tar", "size": 7, "sha256": "ab",
            }]})
        );
    }
}
