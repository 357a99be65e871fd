//! A component of a cluster: a program or an image of the artifact bundle, in the version that the cluster's machines
//! have.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A program or an image as a machine found it in the bundle's index.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Component {
    /// Its name in the index, e.g. `etcd` or `registry.k8s.io/pause`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its version there.
    #[schemars(length(min = 1, max = 128))]
    pub version: String,
    /// SHA-256 of its file in hexadecimal digits, by the architecture that it is for, e.g. `amd64`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 8))]
    pub digests: BTreeMap<String, String>,
}

/// A component as a ClusterDeployment's status remembers it.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterComponent {
    /// Its name in the index, e.g. `etcd` or `registry.k8s.io/pause`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its version there.
    #[schemars(length(min = 1, max = 128))]
    pub version: String,
    /// SHA-256 of its file in hexadecimal digits, by the architecture that it is for, e.g. `amd64`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 8))]
    pub digests: BTreeMap<String, String>,
    /// Whether the version is that of `spec.versions`, as it is or, until a machine has found that of the bundle's
    /// table, as it was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// What it is again when it is taken out of `spec.versions`. Absent: it is not there, or the bundle's table has not
    /// been asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpinned: Option<ComponentFile>,
}

/// A version of a component, and its files.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentFile {
    /// Its version in the index.
    #[schemars(length(min = 1, max = 128))]
    pub version: String,
    /// SHA-256 of its file in hexadecimal digits, by the architecture that it is for, e.g. `amd64`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 8))]
    pub digests: BTreeMap<String, String>,
}

impl From<Component> for ClusterComponent {
    fn from(Component { name, version, digests }: Component) -> Self {
        Self { name, version, digests, pinned: false, unpinned: None }
    }
}

impl Component {
    /// The most that a status holds.
    pub const LIMIT: usize = 64;
    /// The most architectures of one.
    pub const ARCHITECTURES: usize = 8;

    /// Takes in what another machine found. What is known stays: of another version nothing is taken, of this one the
    /// digests of architectures that were not known.
    pub fn merge(known: &mut Vec<Self>, found: &Self) {
        match known.binary_search_by(|there| there.name.cmp(&found.name)) {
            Ok(place) if known[place].version == found.version => {
                let digests = &mut known[place].digests;
                for (architecture, digest) in &found.digests {
                    if digests.len() < Self::ARCHITECTURES {
                        let entry = digests.entry(architecture.clone());
                        entry.or_insert_with(|| digest.clone());
                    }
                }
            }
            Ok(_) => {}
            Err(place) if known.len() < Self::LIMIT => known.insert(place, found.clone()),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(name: &str, version: &str, digests: &[(&str, &str)]) -> Component {
        let owned = |(arch, digest): &(&str, &str)| ((*arch).to_owned(), (*digest).to_owned());
        Component { name: name.into(), version: version.into(), digests: digests.iter().map(owned).collect() }
    }

    #[test]
    fn what_is_known_of_a_component_stays_and_architectures_are_added() {
        let mut known = Vec::new();
        for found in [
            component("runc", "1.5.2", &[("amd64", "a")]),
            component("etcd", "3.6.16", &[("amd64", "b")]),
            component("etcd", "3.7.0", &[("arm64", "c")]),
            component("etcd", "3.6.16", &[("amd64", "d"), ("arm64", "e")]),
        ] {
            Component::merge(&mut known, &found);
        }
        let expected = [
            component("etcd", "3.6.16", &[("amd64", "b"), ("arm64", "e")]),
            component("runc", "1.5.2", &[("amd64", "a")]),
        ];
        assert_eq!(known, expected);
    }

    #[test]
    fn no_more_components_are_kept_than_a_status_holds() {
        let mut known = Vec::new();
        for number in 0..100 {
            Component::merge(&mut known, &component(&format!("c{number}"), "1", &[]));
        }
        assert_eq!(known.len(), Component::LIMIT);
        for number in 0..100 {
            let architecture = format!("a{number}");
            Component::merge(&mut known, &component("c0", "1", &[(&architecture, "a")]));
        }
        assert_eq!(known[0].digests.len(), Component::ARCHITECTURES);
    }
}
