//! An entry of an artifact bundle: found in the bundle's index, and held to whoever vouches for it.

mod entry;
mod signature;

use crds::Reason;
use serde::Deserialize;

use super::problem::Problem;
use crate::message::quote;
use entry::plain;
pub use entry::{EntryKind, EntryWanted};
use signature::is_signed;

/// The format of an index that is read.
const FORMAT: u64 = 1;
/// The most that an index has, in bytes.
pub const LARGEST_INDEX: u64 = 16 << 20;

/// An entry that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// URL of the file.
    pub url: String,
    /// SHA-256 of the file, in lower-case hexadecimal digits.
    pub sha256: String,
}

/// `index.json`: what is read of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    format_version: u64,
    #[serde(default)]
    artifacts: Vec<Artifact>,
}

#[derive(Deserialize)]
struct Artifact {
    name: String,
    kind: String,
    version: String,
    path: String,
    #[serde(default)]
    size: u64,
    sha256: String,
    /// Ed25519, in base64.
    #[serde(default)]
    signature: String,
}

impl EntryWanted {
    /// The problem of an index that is not the one that `indexSHA256` names, if it is not.
    pub fn check_index(&self, sha256: &str) -> Result<(), Problem> {
        match self.place.index_sha256.as_ref().filter(|wanted| *wanted != sha256) {
            None => Ok(()),
            Some(wanted) => {
                let message = format!(
                    "{} has the SHA-256 {sha256}, and {}.indexSHA256 is {wanted}: correct it, or find out who has changed the bundle",
                    self.index_url(),
                    self.field
                );
                Err(Problem { reason: Reason::BundleDigestMismatch, message })
            }
        }
    }

    /// The problem of a file that is not the one of the index, if it is not.
    pub fn check_file(&self, entry: &Entry, sha256: &str) -> Result<(), Problem> {
        if entry.sha256 == sha256 {
            return Ok(());
        }
        let message = format!(
            "{} has the SHA-256 {sha256}, and the bundle's index says {}: make the bundle anew",
            entry.url, entry.sha256
        );
        Err(Problem { reason: Reason::BundleDigestMismatch, message })
    }

    /// Where the entry is, by the bytes of the index; or why it is not to be used.
    pub fn find(&self, index: &[u8]) -> Result<Entry, Problem> {
        let problem = |reason: Reason, message: String| Problem { reason, message };
        let url = self.index_url();
        let index: Index = serde_json::from_slice(index).map_err(|error| {
            let why = quote(error.to_string());
            problem(Reason::BundleInvalid, format!("{url} cannot be read: {why}: is it the index of a bundle?"))
        })?;
        if index.format_version != FORMAT {
            let message = format!(
                "{url} has formatVersion {}, and {FORMAT} is read here: make the bundle with the wright of this version",
                index.format_version
            );
            return Err(problem(Reason::BundleInvalid, message));
        }
        let is = |there: &&Artifact| {
            there.name == self.name && there.kind == self.kind.name() && plain(&there.version) == plain(&self.version)
        };
        let Some(found) = index.artifacts.iter().find(is) else {
            let message = format!(
                "{url} has no {}, which {} asks for: add it with wright bundle add, or correct the name or the version{}",
                self.title(),
                self.field,
                others(&index, self)
            );
            return Err(problem(Reason::BundleEntryNotFound, message));
        };
        self.check(found)?;
        Ok(Entry { url: format!("{}/{}", self.base(), found.path), sha256: found.sha256.to_lowercase() })
    }

    fn check(&self, found: &Artifact) -> Result<(), Problem> {
        let (url, title) = (self.index_url(), self.title());
        let invalid =
            |why: String| Err(Problem { reason: Reason::BundleInvalid, message: format!("{url}: {title}: {why}") });
        let is_digest = found.sha256.len() == 64 && found.sha256.chars().all(|digit| digit.is_ascii_hexdigit());
        let is_below = found.path.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
            && found.path.chars().all(|letter| letter.is_ascii_alphanumeric() || "-._~/+".contains(letter));
        if !is_digest || !is_below {
            return invalid("its sha256 or its path cannot be used: make the bundle anew".into());
        }
        if found.size > self.kind.largest() {
            let (size, most) = (found.size, self.kind.largest());
            return invalid(format!("it has {size} bytes, and at most {most} are taken: split it"));
        }
        let Some(key) = &self.place.signed_by else { return Ok(()) };
        is_signed(key, self, &found.sha256.to_lowercase(), &found.signature).map_err(|why| Problem {
            reason: Reason::BundleNotSigned,
            message: format!(
                "{url}: {title}: {why}, which {}.signedBy gives: sign it with wright bundle add --signing-key",
                self.field
            ),
        })
    }
}

/// Other versions of the entry that are there, in words.
fn others(index: &Index, wanted: &EntryWanted) -> String {
    let same = index.artifacts.iter().filter(|there| there.name == wanted.name && there.kind == wanted.kind.name());
    let versions: Vec<String> = same.take(5).map(|there| quote(there.version.clone())).collect();
    if versions.is_empty() { String::new() } else { format!("; it has {}", versions.join(", ")) }
}

#[cfg(test)]
mod tests;
