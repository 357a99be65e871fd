//! The lock of what machines take from upstream: the digest of each file and image, as `bundle.lock` has it.

use std::collections::BTreeMap;

use crds::Reason;
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Deserialize;
use serde_json::{Value, json};

use super::problem::InputsProblem;

/// Key of the ConfigMap of `artifacts.lockRef`.
const KEY: &str = "bundle.lock";
const VERSION: u64 = 1;

/// The digests, in hexadecimal digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArtifactLock {
    /// SHA-256 by upstream's URL.
    files: BTreeMap<String, String>,
    /// SHA-256 of the manifest by reference and platform: `registry.k8s.io/pause:3.10.1 linux/amd64`.
    images: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Text {
    lock_version: u64,
    #[serde(default)]
    files: BTreeMap<String, File>,
    #[serde(default)]
    images: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct File {
    sha256: String,
}

impl ArtifactLock {
    /// As runs have it.
    pub(super) fn variable(&self) -> Value {
        json!({"files": self.files, "images": self.images})
    }

    /// The digest of the file at upstream's URL.
    pub fn file(&self, url: &str) -> Option<&str> {
        self.files.get(url).map(String::as_str)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let Text { lock_version, files, images } = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if lock_version != VERSION {
            return Err(format!("lockVersion is {lock_version}, and the one that is read here is {VERSION}"));
        }
        let files = files.into_iter().map(|(url, file)| (url, file.sha256));
        let images = images.into_iter().map(|(image, digest)| (image, digest.trim_start_matches("sha256:").to_owned()));
        Ok(Self {
            files: files.map(checked).collect::<Result<_, _>>()?,
            images: images.map(checked).collect::<Result<_, _>>()?,
        })
    }
}

fn checked((key, digest): (String, String)) -> Result<(String, String), String> {
    let known = digest.len() == 64 && digest.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !known {
        return Err(format!("the digest of {key} is {digest:?}, and must be 64 hexadecimal digits"));
    }
    Ok((key, digest.to_lowercase()))
}

/// The lock in the ConfigMap of this name, which `spec.artifacts.lockRef` names; `None`: it is not there.
pub fn lock_of(name: &str, map: Option<&ConfigMap>) -> Result<ArtifactLock, InputsProblem> {
    let make = format!("make it of the file that wright bundle lock writes, with the key {KEY}");
    let Some(map) = map else {
        let message = format!("ConfigMap {name} of spec.artifacts.lockRef is not there: {make}");
        return Err(InputsProblem::waits(Reason::ConfigMapNotFound, message));
    };
    let invalid = |problem: &str| {
        let message = format!("ConfigMap {name} of spec.artifacts.lockRef has no lock in key {KEY}: {problem}: {make}");
        InputsProblem::waits(Reason::ArtifactLockInvalid, message)
    };
    let text = map.data.as_ref().and_then(|data| data.get(KEY)).ok_or_else(|| invalid("the key is missing"))?;
    ArtifactLock::parse(text).map_err(|problem| invalid(&problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ArtifactLock, InputsProblem> {
        let data = [(KEY.to_owned(), text.to_owned())].into();
        lock_of("lock", Some(&ConfigMap { data: Some(data), ..ConfigMap::default() }))
    }

    #[test]
    fn a_lock_is_what_wright_writes() {
        let (file, image) = ("AB".repeat(32), "cd".repeat(32));
        let text = json!({
            "lockVersion": 1,
            "files": {"https://x/runc": {"sha256": file, "checksums": "https://x/sums"}},
            "images": {"r/pause:3 linux/amd64": format!("sha256:{image}")},
        });
        let expected = json!({
            "files": {"https://x/runc": "ab".repeat(32)}, "images": {"r/pause:3 linux/amd64": image},
        });
        assert_eq!(read(&text.to_string()).unwrap().variable(), expected);
        assert_eq!(read(r#"{"lockVersion": 1}"#).unwrap().variable(), json!({"files": {}, "images": {}}));
    }

    #[test]
    fn what_is_no_lock_is_refused_with_how_to_make_one() {
        let check = |found: Result<ArtifactLock, InputsProblem>, reason: &str, said: &str| {
            let problem = found.unwrap_err();
            assert_eq!((problem.reason.as_str(), problem.permanent), (reason, false), "{}", problem.message);
            for part in [said, "spec.artifacts.lockRef", "wright bundle lock writes, with the key bundle.lock"] {
                assert!(problem.message.contains(part), "{}", problem.message);
            }
        };
        check(lock_of("lock", None), "ConfigMapNotFound", "ConfigMap lock");
        check(lock_of("lock", Some(&ConfigMap::default())), "ArtifactLockInvalid", "the key is missing");
        check(read("[]"), "ArtifactLockInvalid", "invalid");
        check(
            read(r#"{"lockVersion": 2}"#),
            "ArtifactLockInvalid",
            "lockVersion is 2, and the one that is read here is 1",
        );
        let short = r#"{"lockVersion": 1, "images": {"a": "sha256:1"}}"#;
        check(read(short), "ArtifactLockInvalid", "the digest of a is \"1\"");
    }
}
