//! The files of a run's Secret, in memory. Their content is never printed: there is no `Debug` of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fmt, fs, io};

use crds::backup::{BUNDLE_PREFIX, IDENTITY_SECRET, PKI_SECRET, STORAGE_PREFIX};

/// No file of ours is larger; a bundle of CAs may come near.
const FILE_LIMIT: u64 = 1 << 20;

/// Credentials, what a backup takes along, and what one is decrypted with: for the executor alone, not for the roles.
const CREDENTIALS: [&str; 8] = [
    "ssh-privatekey.",
    "password.",
    "become-password.",
    "etcd.backup-client.",
    STORAGE_PREFIX,
    BUNDLE_PREFIX,
    IDENTITY_SECRET,
    PKI_SECRET,
];

/// The files of the Secret by name.
#[derive(Clone, Default)]
pub struct Secrets {
    files: BTreeMap<String, Vec<u8>>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.files.keys()).finish()
    }
}

impl FromIterator<(String, Vec<u8>)> for Secrets {
    fn from_iter<I: IntoIterator<Item = (String, Vec<u8>)>>(files: I) -> Self {
        Self { files: files.into_iter().collect() }
    }
}

impl Secrets {
    /// Reads every file of a directory; one that is not there holds none. A mounted Secret keeps its files
    /// behind links beside hidden directories: these are passed over.
    pub fn read(directory: &Path) -> io::Result<Self> {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let mut files = BTreeMap::new();
        for entry in entries {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                continue;
            };
            if name.starts_with('.') || !is_name(&name) {
                continue;
            }
            let metadata = fs::metadata(entry.path())?;
            if !metadata.is_file() {
                continue;
            }
            if metadata.len() > FILE_LIMIT {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("{name} is larger than 1 MiB")));
            }
            files.insert(name, fs::read(entry.path())?);
        }
        Ok(Self { files })
    }

    /// The content of a file.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Vec::as_slice)
    }

    /// Every file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(name, content)| (name.as_str(), content.as_slice()))
    }

    /// The files that roles copy from: all but the credentials.
    pub fn of_roles(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.iter().filter(|(name, _)| !CREDENTIALS.iter().any(|prefix| name.starts_with(prefix)))
    }
}

/// True for what a key of a Secret may be called.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 253
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && name != "."
        && name != ".."
}

/// A password as it is meant: an editor's newline at its end is not part of it.
pub fn without_newline(content: &[u8]) -> &[u8] {
    let content = content.strip_suffix(b"\n").unwrap_or(content);
    content.strip_suffix(b"\r").unwrap_or(content)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::Secrets;

    #[test]
    fn a_mounted_secret_is_read_through_its_links_and_roles_get_no_credentials() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("..2026");
        std::fs::create_dir(&data).unwrap();
        let names = [
            "pki.ca.crt",
            "ssh-privatekey.fleet",
            "password.x",
            "become-password.x",
            "etcd.backup-client.key",
            "storage.secretAccessKey",
            "bundle.pki.ca.key",
            "restore.identity",
            "restore.pki.json",
        ];
        for name in names {
            std::fs::write(data.join(name), name).unwrap();
            symlink(data.join(name), directory.path().join(name)).unwrap();
        }
        symlink("..2026", directory.path().join("..data")).unwrap();
        let secrets = Secrets::read(directory.path()).unwrap();
        assert_eq!(secrets.iter().count(), names.len());
        assert_eq!(secrets.of_roles().map(|(name, _)| name).collect::<Vec<_>>(), ["pki.ca.crt"]);
        assert_eq!(secrets.get("password.x"), Some(b"password.x".as_slice()));
    }

    #[test]
    fn printing_secrets_shows_names_only() {
        let secrets: Secrets = [("password.x".to_owned(), b"hunter2hunter2".to_vec())].into_iter().collect();
        assert_eq!(format!("{secrets:?}"), r#"{"password.x"}"#);
    }

    #[test]
    fn a_directory_that_is_not_there_holds_no_secrets() {
        assert_eq!(Secrets::read("/nowhere/at/all".as_ref()).unwrap().iter().count(), 0);
    }
}
