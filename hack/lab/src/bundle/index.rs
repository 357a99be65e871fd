//! The index as machines read it.

use serde::Serialize;

use super::artifact::Planned;
use crate::images::architecture;

/// `index.json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Rises when readers must change.
    pub format_version: u32,
    /// Everything that is there.
    pub artifacts: Vec<Artifact>,
}

impl Index {
    /// An index of nothing.
    pub fn new() -> Self {
        Self {
            format_version: 1,
            artifacts: Vec::new(),
        }
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

    #[test]
    fn an_entry_says_all_that_a_machine_needs() {
        let planned = Planned {
            name: "registry.k8s.io/pause".into(),
            version: "3.10.1".into(),
            path: "images/pause-3.10.1-linux-amd64.tar".into(),
            content: Content::Image("/cache/pause.tar".into()),
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
