//! The bundle: what a cluster needs beside its snapshot to live elsewhere, as a tar archive.

use crate::error::BackupError;

/// A file of the bundle: its name, which may have slashes, and its content.
pub type BundleFile = (String, Vec<u8>);

/// A tar archive of the files, of mode 0600 and of this time (seconds since 1970).
pub fn pack(files: &[BundleFile], time: u64) -> Result<Vec<u8>, BackupError> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |name: &str, content: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(time);
        archive.append_data(&mut header, name, content)
    };
    for (name, content) in files {
        add(name, content).map_err(|error| failed(name, &error))?;
    }
    archive.into_inner().map_err(|error| failed("", &error))
}

fn failed(file: &str, error: &std::io::Error) -> BackupError {
    BackupError::Bundle { file: file.to_owned(), problem: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_bundle_unpacks_to_its_files_which_only_their_owner_may_read() {
        let long = format!("machines/{}.yaml", "m".repeat(180));
        let files = [("pki/ca.crt".to_owned(), b"PEM".to_vec()), (long.clone(), Vec::new())];
        let packed = pack(&files, 1_772_366_400).unwrap();
        let mut archive = tar::Archive::new(&packed[..]);
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            assert_eq!((entry.header().mode().unwrap(), entry.header().mtime().unwrap()), (0o600, 1_772_366_400));
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            found.push((entry.path().unwrap().display().to_string(), content));
        }
        assert_eq!(found, files);
        for wrong in ["../a", "a/../b", ""] {
            let refused = pack(&[(wrong.to_owned(), Vec::new())], 0).unwrap_err();
            assert_eq!(refused.reason(), "BackupCorrupt", "{wrong:?}");
        }
    }
}
