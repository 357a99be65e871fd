//! The index of an artifact bundle: what of it names etcd.

use crds::backup::ProgramsInputs;
use serde::Deserialize;

use crate::error::ProgramsFailure;
use crate::text::sanitize;

/// The layout that is read.
const FORMAT: u32 = 1;

/// `index.json`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Index {
    format_version: u32,
    artifacts: Vec<Artifact>,
}

/// One file of the bundle. An architecture that is left out is every one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Artifact {
    name: String,
    version: String,
    kind: String,
    #[serde(default)]
    os: Option<String>,
    #[serde(default)]
    arch: Option<String>,
    /// Below the bundle's URL.
    pub path: String,
    pub sha256: String,
}

impl Index {
    /// Reads it; the error says what is wrong.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let index: Self = serde_json::from_slice(text).map_err(|error| sanitize(&error.to_string()))?;
        match index.format_version {
            FORMAT => Ok(index),
            newer if newer > FORMAT => Err(format!(
                "formatVersion is {newer}, and the newest that is read here is {FORMAT}: update Clusterwright, or make \
                 the bundle with the wright of the version that is installed"
            )),
            other => Err(format!("formatVersion is {other}, and must be {FORMAT}")),
        }
    }

    /// The archive with etcd's programs of the version that is wanted.
    pub fn etcd(&self, wanted: &ProgramsInputs, arch: &str) -> Result<Artifact, (ProgramsFailure, String)> {
        let is = |found: &Option<String>, wanted: &str| found.as_deref().is_none_or(|found| found == wanted);
        let version = |text: &str| text.trim_start_matches('v').to_owned();
        let mut found = self.artifacts.iter().filter(|artifact| {
            artifact.name == "etcd"
                && artifact.kind == "archive"
                && version(&artifact.version) == version(&wanted.version)
                && is(&artifact.os, "linux")
                && is(&artifact.arch, arch)
        });
        let frozen = wanted.digests.get(arch).map(|digest| digest.to_lowercase());
        let first = found.clone().next();
        let meant =
            |artifact: &&Artifact| frozen.as_ref().is_none_or(|frozen| artifact.sha256.to_lowercase() == *frozen);
        match (found.find(meant), first, &frozen) {
            (Some(artifact), ..) => Ok(artifact.clone()),
            (None, Some(other), Some(frozen)) => {
                let (url, version, found) = (&wanted.url, &wanted.version, sanitize(&other.sha256));
                let problem = format!(
                    "{url}/index.json has etcd {version} with the SHA-256 {found}, and {frozen} is frozen for the \
                     cluster"
                );
                Err((ProgramsFailure::Mismatch, problem))
            }
            (None, ..) => {
                let (url, version) = (&wanted.url, &wanted.version);
                let problem = format!("{url}/index.json has no etcd {version} for linux/{arch}: add it to the bundle");
                Err((ProgramsFailure::NotFound, problem))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Index;

    #[test]
    fn a_newer_format_is_refused_with_what_to_do() {
        let refused = |text: &str| Index::parse(text.as_bytes()).err().unwrap();
        assert!(refused(r#"{"formatVersion": 2, "artifacts": []}"#).contains("update Clusterwright"));
        assert_eq!(refused(r#"{"formatVersion": 0, "artifacts": []}"#), "formatVersion is 0, and must be 1");
        assert!(refused(r#"{"artifacts": []}"#).contains("missing field `formatVersion`"));
    }
}
