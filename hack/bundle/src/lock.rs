//! `bundle.lock`: the digest of each download, so that the next one is the same file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::digest::is_digest;
use crate::publish::publish_json;

/// Name of the lock in a bundle.
pub const FILE: &str = "bundle.lock";
const LOCK_VERSION: u64 = 1;

/// What is known of downloads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lock {
    lock_version: u64,
    /// By upstream's URL, whatever mirror it came from.
    #[serde(default)]
    files: BTreeMap<String, LockedFile>,
    /// Digest of the manifest by reference and platform, e.g. `registry.k8s.io/pause:3.10.1 linux/amd64`.
    #[serde(default)]
    images: BTreeMap<String, String>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LockedFile {
    /// 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// URL of upstream's checksum file that had this digest when it was locked, or the list that a distribution signs.
    /// Absent: the digest was trusted on first use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksums: Option<String>,
}

impl Lock {
    /// A lock of nothing.
    pub fn new() -> Self {
        Self { lock_version: LOCK_VERSION, files: BTreeMap::new(), images: BTreeMap::new() }
    }

    /// The lock in that file; of nothing where there is none.
    pub fn read(path: &Path) -> Result<Self> {
        if !path.exists() {
            return Ok(Self::new());
        }
        let reading = || format!("failed to read {}", path.display());
        Self::parse(&fs::read(path).with_context(reading)?).with_context(reading)
    }

    fn parse(text: &[u8]) -> Result<Self> {
        let lock: Self = serde_json::from_slice(text)?;
        ensure!(
            lock.lock_version == LOCK_VERSION,
            "lockVersion is {}, and the one that is read here is {LOCK_VERSION}: use a newer wright",
            lock.lock_version
        );
        let digests = lock.files.iter().map(|(key, file)| (key, file.sha256.as_str()));
        let images = lock.images.iter().map(|(key, digest)| (key, digest.trim_start_matches("sha256:")));
        for (key, digest) in digests.chain(images) {
            ensure!(is_digest(digest), "the digest of {key} is {digest:?}, and must be 64 hexadecimal digits");
        }
        Ok(lock)
    }

    /// Writes it, sorted.
    pub fn write(&self, path: &Path) -> Result<()> {
        publish_json(path, self)
    }

    /// What is known of a file.
    pub fn file(&self, url: &str) -> Option<&LockedFile> {
        self.files.get(url)
    }

    /// The digest of an image's manifest.
    pub fn image(&self, key: &str) -> Option<&str> {
        self.images.get(key).map(String::as_str)
    }

    /// Keeps what was downloaded first. Fails if it is known with another digest.
    pub fn keep_file(&mut self, url: &str, file: LockedFile) -> Result<()> {
        if let Some(known) = self.files.get(url) {
            return compare(url, &known.sha256, &file.sha256);
        }
        self.files.insert(url.to_owned(), file);
        Ok(())
    }

    /// The same of an image.
    pub fn keep_image(&mut self, key: &str, digest: &str) -> Result<()> {
        if let Some(known) = self.images.get(key) {
            return compare(key, known, digest);
        }
        self.images.insert(key.to_owned(), digest.to_owned());
        Ok(())
    }
}

impl Default for Lock {
    fn default() -> Self {
        Self::new()
    }
}

/// Fails if what was downloaded is not what is locked.
pub fn compare(what: &str, locked: &str, got: &str) -> Result<()> {
    if !locked.eq_ignore_ascii_case(got) {
        bail!(
            "{what} has the digest {got}, and {FILE} has {locked}: it is another file than before, and nothing of it \
             is used. Find out who changed it; if that was upstream, and meant, delete its entry from {FILE}"
        );
    }
    Ok(())
}

/// The key of an image in a lock.
pub fn image_key(reference: &str, arch: &str) -> String {
    format!("{reference} linux/{arch}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locked(digit: &str) -> LockedFile {
        LockedFile { sha256: digit.repeat(64), checksums: None }
    }

    #[test]
    fn a_lock_is_written_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let mut lock = Lock::read(&path).unwrap();
        let checksums = Some("https://x/a.sha256".to_owned());
        lock.keep_file("https://x/a", LockedFile { checksums, ..locked("a") }).unwrap();
        lock.keep_image("r/pause:3.10.1 linux/amd64", &format!("sha256:{}", "b".repeat(64))).unwrap();
        lock.write(&path).unwrap();
        assert_eq!(Lock::read(&path).unwrap(), lock);
    }

    #[test]
    fn another_digest_is_refused_and_the_first_one_stays() {
        let mut lock = Lock::new();
        lock.keep_file("https://x/a", locked("a")).unwrap();
        let error = lock.keep_file("https://x/a", locked("b")).unwrap_err().to_string();
        for said in ["https://x/a", &"a".repeat(64), &"b".repeat(64), "delete its entry"] {
            assert!(error.contains(said), "{error}");
        }
        assert_eq!(lock.file("https://x/a"), Some(&locked("a")));
    }

    #[test]
    fn a_lock_that_is_not_understood_is_refused() {
        for (text, said) in [
            (r#"{"lockVersion": 2}"#, "lockVersion is 2"),
            (r#"{"lockVersion": 1, "charts": {}}"#, "unknown field `charts`"),
            (r#"{"lockVersion": 1, "images": {"a": "sha256:1"}}"#, "the digest of a is \"1\""),
        ] {
            let error = format!("{:#}", Lock::parse(text.as_bytes()).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
    }
}
