//! Unpacks the bundle of a backup.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Component, Path};

use crate::decryption::decrypt;
use crate::digest::Summing;
use crate::error::BackupError;
use crate::source::Source;

/// The most that a bundle may hold. Ours have some hundred KiB.
const MOST: u64 = 64 << 20;

/// The files of the bundle by name: names are relative, and lead nowhere else. Errors: it is not what the manifest
/// says, is larger than 64 MiB or no archive of such files (`BackupCorrupt`); it was encrypted for others
/// (`IdentityDoesNotMatch`); or those of the storage.
pub async fn unpack(source: &Source<'_>) -> Result<BTreeMap<String, Vec<u8>>, BackupError> {
    let object = &source.manifest().bundle;
    let corrupt = |problem: String| source.corrupt(format!("{}: {problem}", object.name));
    if object.size.max(object.plain_size) > MOST {
        let size = object.size.max(object.plain_size);
        return Err(corrupt(format!("it has {size} bytes, and at most {MOST} are read")));
    }
    let mut archive = Vec::new();
    let mut summing = Summing::default();
    decrypt(source, object, &mut archive, |piece| summing.update(piece)).await?;
    let sum = summing.finish();
    if (sum.size, &sum.sha256) != (object.plain_size, &object.plain_sha256) {
        return Err(corrupt(format!(
            "decrypted it has {} bytes with the SHA-256 {}, and its manifest says {} and {}",
            sum.size, sum.sha256, object.plain_size, object.plain_sha256
        )));
    }
    files(&archive).map_err(corrupt)
}

fn files(archive: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let unreadable = |error: std::io::Error| format!("it is no tar archive: {error}");
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(archive).entries().map_err(unreadable)? {
        let mut entry = entry.map_err(unreadable)?;
        let name = name(&entry.path().map_err(unreadable)?)?;
        if !entry.header().entry_type().is_file() {
            return Err(format!("{name} is no regular file"));
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(unreadable)?;
        if content.len() as u64 != entry.size() {
            return Err(format!("{name} is cut off"));
        }
        if files.insert(name.clone(), content).is_some() {
            return Err(format!("{name} is in it twice"));
        }
    }
    Ok(files)
}

/// A name as it was packed.
fn name(path: &Path) -> Result<String, String> {
    let plain = path.components().all(|component| matches!(component, Component::Normal(_)));
    match path.to_str() {
        Some(name) if plain && !name.is_empty() && !name.contains(char::is_control) => Ok(name.to_owned()),
        _ => Err(format!("{path:?} is no name of a file of a bundle")),
    }
}

#[cfg(test)]
mod tests {
    use super::files;
    use crate::bundle::pack;

    /// An archive of one entry whose name is written as it is.
    fn archive(name: &str, kind: tar::EntryType) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        let mut archive = tar::Builder::new(Vec::new());
        archive.append(&header, &b""[..]).unwrap();
        archive.into_inner().unwrap()
    }

    #[test]
    fn what_was_packed_is_unpacked() {
        let long = format!("machines/{}.yaml", "m".repeat(180));
        let packed = [("pki/ca.crt".to_owned(), b"PEM".to_vec()), (long, vec![7; 5000])];
        let unpacked = files(&pack(&packed, 0).unwrap()).unwrap();
        assert_eq!(unpacked, packed.into());
        assert_eq!(files(&pack(&[], 0).unwrap()), Ok([].into()));
    }

    #[test]
    fn names_that_lead_elsewhere_and_what_is_no_file_are_refused() {
        assert!(files(&archive("a/b", tar::EntryType::Regular)).is_ok());
        for name in ["../a", "/a", "a/../b", ".", "a\u{1b}b"] {
            let refused = files(&archive(name, tar::EntryType::Regular)).unwrap_err();
            assert!(refused.contains("no name of a file"), "{name:?}: {refused}");
        }
        for kind in [tar::EntryType::Symlink, tar::EntryType::Link, tar::EntryType::Directory, tar::EntryType::Fifo] {
            assert!(files(&archive("a", kind)).unwrap_err().contains("no regular file"), "{kind:?}");
        }
        let twice = [("a".to_owned(), Vec::new()), ("a".to_owned(), Vec::new())];
        assert_eq!(files(&pack(&twice, 0).unwrap()), Err("a is in it twice".to_owned()));
    }

    #[test]
    fn an_archive_that_is_cut_off_or_none_is_refused() {
        let whole = pack(&[("a".to_owned(), vec![1; 2000])], 0).unwrap();
        for length in [100, 600, 1500] {
            assert!(files(&whole[..length]).is_err(), "{length}");
        }
        assert!(files(&[b'x'; 1024]).unwrap_err().contains("no tar archive"));
    }
}
