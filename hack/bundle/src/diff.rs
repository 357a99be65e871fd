//! What differs between two bundles.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::{Artifact, Index};

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// The second has a version for a minor of Kubernetes that the first has not, or another; or the other way round.
    Component { minor: String, name: String, before: Option<String>, after: Option<String> },
    /// The second has it, and the first has not.
    Added(String),
    /// The first has it, and the second has not.
    Removed(String),
    /// Both have it, and as another file.
    Changed { artifact: String, before: String, after: String },
}

impl std::fmt::Display for Difference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let none = "none".to_owned();
        match self {
            Self::Component { minor, name, before, after } => {
                let (before, after) = (before.as_ref().unwrap_or(&none), after.as_ref().unwrap_or(&none));
                write!(formatter, "for Kubernetes {minor}: {name} {before} -> {after}")
            }
            Self::Added(artifact) => write!(formatter, "+ {artifact}"),
            Self::Removed(artifact) => write!(formatter, "- {artifact}"),
            Self::Changed { artifact, before, after } => {
                write!(formatter, "! {artifact}: sha256 {before} -> {after}")
            }
        }
    }
}

/// The differences, sorted: tables of components, then what was added, removed and changed.
pub fn diff(one: &Index, other: &Index) -> Vec<Difference> {
    let mut found = components(one, other);
    let list = |index| -> BTreeMap<_, &Artifact> {
        let artifacts: &Vec<Artifact> = index;
        artifacts.iter().map(|artifact| (artifact.key(), artifact)).collect()
    };
    let (before, after) = (list(&one.artifacts), list(&other.artifacts));
    for key in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
        match (before.get(key), after.get(key)) {
            (Some(before), Some(after)) if !before.sha256.eq_ignore_ascii_case(&after.sha256) => {
                found.push(Difference::Changed {
                    artifact: after.to_string(),
                    before: before.sha256.to_lowercase(),
                    after: after.sha256.to_lowercase(),
                });
            }
            (None, Some(after)) => found.push(Difference::Added(after.to_string())),
            (Some(before), None) => found.push(Difference::Removed(before.to_string())),
            _ => {}
        }
    }
    found.sort();
    found
}

fn components(one: &Index, other: &Index) -> Vec<Difference> {
    let names = |index: &Index| -> BTreeSet<(String, String)> {
        let of = |(minor, versions): (&String, &BTreeMap<String, String>)| {
            versions.keys().map(|name| (minor.clone(), name.clone())).collect::<Vec<_>>()
        };
        index.components.iter().flat_map(of).collect()
    };
    let version = |index: &Index, minor: &str, name: &str| index.components.get(minor)?.get(name).cloned();
    let mut found = Vec::new();
    for (minor, name) in names(one).union(&names(other)) {
        let (before, after) = (version(one, minor, name), version(other, minor, name));
        if before != after {
            found.push(Difference::Component { minor: minor.clone(), name: name.clone(), before, after });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Kind;

    fn index(artifacts: &[(&str, &str)], etcd: &str) -> Index {
        let mut index = Index::new();
        index.components.insert("1.35".into(), [("etcd".to_owned(), etcd.to_owned())].into());
        for (version, digit) in artifacts {
            let path = format!("files/etcd-{version}");
            let file = (7, digit.repeat(64));
            index.insert(Artifact::new("etcd", Kind::Archive, version, "amd64", &path, file)).unwrap();
        }
        index
    }

    #[test]
    fn what_is_the_same_does_not_differ() {
        assert_eq!(diff(&index(&[("3.6.14", "a")], "3.6.14"), &index(&[("3.6.14", "A")], "3.6.14")), []);
    }

    #[test]
    fn each_kind_of_difference_is_reported() {
        let (one, other) =
            (index(&[("3.6.9", "a"), ("3.6.14", "b")], "3.6.14"), index(&[("3.6.14", "c"), ("3.6.16", "d")], "3.6.16"));
        let said: Vec<String> = diff(&one, &other).iter().map(ToString::to_string).collect();
        let changed = format!("! etcd 3.6.14 linux/amd64: sha256 {} -> {}", "b".repeat(64), "c".repeat(64));
        assert_eq!(
            said,
            [
                "for Kubernetes 1.35: etcd 3.6.14 -> 3.6.16",
                "+ etcd 3.6.16 linux/amd64",
                "- etcd 3.6.9 linux/amd64",
                &changed
            ]
        );
    }
}
