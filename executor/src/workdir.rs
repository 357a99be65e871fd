//! The private directory of a run, in memory: keys, inventory, sockets, Ansible's temporary files. It goes
//! with the process; what a crashed one left is removed by the next.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statfs::{FsType, statfs};
use thiserror::Error;

const PREFIX: &str = "cw-";
const LOCK: &str = "lock";
/// ramfs, which knows no limits; the `nix` crate names tmpfs only.
const RAMFS: FsType = FsType(0x8584_58f6);
/// A socket's path may have 108 bytes, of which ssh takes 17 and we `/c/` and a number.
const LONGEST: usize = 70;

/// A private directory could not be made.
#[derive(Debug, Error)]
pub enum WorkdirError {
    /// None of the directories is writable and in memory.
    #[error("no directory in memory (tmpfs) was found for keys: tried {tried}; set TMPDIR to one")]
    NoMemory {
        /// The directories tried.
        tried: String,
    },
    /// The system refused.
    #[error("failed to make the private directory {}", path.display())]
    Make {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

/// A directory of mode 0700 in memory, removed with its owner.
#[derive(Debug)]
pub struct Workdir {
    path: PathBuf,
    /// Held for as long as the process lives: by it another one sees that the directory is in use.
    _lock: File,
}

impl Workdir {
    /// Makes one in the first of the directories that is in memory, and removes those that nobody holds any
    /// more.
    pub fn make(candidates: &[PathBuf]) -> Result<Self, WorkdirError> {
        let Some(parent) = candidates.iter().find(|path| fits(path)) else {
            let tried: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
            return Err(WorkdirError::NoMemory { tried: tried.join(", ") });
        };
        remove_abandoned(parent);
        let path = parent.join(format!("{PREFIX}{}", std::process::id()));
        Self::at(&path).map_err(|source| WorkdirError::Make { path, source })
    }

    fn at(path: &Path) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(path)?;
        let lock = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path.join(LOCK))?;
        lock.try_lock().map_err(io::Error::from)?;
        let workdir = Self { path: path.to_owned(), _lock: lock };
        // tmp: rendered files; home: ansible's own; c: ssh's sockets, short for their path's sake.
        for name in ["tmp", "home", "c"] {
            workdir.directory(name)?;
        }
        Ok(workdir)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a directory in it.
    pub fn directory(&self, name: impl AsRef<Path>) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        Ok(path)
    }

    /// Writes a file of mode 0600 in it, with the directories on the way.
    pub fn write(&self, name: impl AsRef<Path>, content: &[u8]) -> io::Result<PathBuf> {
        let path = self.path.join(&name);
        if let Some(parent) = name.as_ref().parent() {
            self.directory(parent)?;
        }
        OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path)?.write_all(content)?;
        Ok(path)
    }
}

impl Drop for Workdir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "failed to remove the private directory");
        }
    }
}

fn fits(path: &Path) -> bool {
    let plain = path.to_str().is_some_and(|text| {
        text.len() <= LONGEST
            && text.starts_with('/')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "/-_.".contains(c))
    });
    plain
        && statfs(path).is_ok_and(|system| {
            system.filesystem_type() == nix::sys::statfs::TMPFS_MAGIC || system.filesystem_type() == RAMFS
        })
        && nix::unistd::access(path, nix::unistd::AccessFlags::W_OK | nix::unistd::AccessFlags::X_OK).is_ok()
}

/// Removes the directories whose lock can be taken: their process is gone. What is another user's stays.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let Ok(lock) = OpenOptions::new().write(true).open(entry.path().join(LOCK)) else {
            continue;
        };
        if lock.try_lock().is_ok() && fs::remove_dir_all(entry.path()).is_ok() {
            tracing::info!(path = %entry.path().display(), "removed what an earlier run left");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::{Workdir, WorkdirError};

    #[test]
    fn a_private_directory_is_in_memory_private_and_goes_with_its_owner() {
        let parent = tempfile::tempdir_in("/dev/shm").unwrap();
        let abandoned = parent.path().join("cw-1");
        std::fs::create_dir(&abandoned).unwrap();
        std::fs::write(abandoned.join("lock"), "").unwrap();
        std::fs::write(abandoned.join("key"), "left by a crashed run").unwrap();

        let workdir = Workdir::make(&[PathBuf::from("/proc"), parent.path().to_owned()]).unwrap();
        let file = workdir.write("ssh/keys/fleet", b"key").unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        for directory in [workdir.path(), file.parent().unwrap()] {
            assert_eq!(std::fs::metadata(directory).unwrap().permissions().mode() & 0o777, 0o700);
        }
        assert!(!abandoned.exists());
        drop(workdir);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_on_disk_is_not_taken_for_keys() {
        let error = Workdir::make(&[PathBuf::from("/proc"), PathBuf::from("/nowhere")]).unwrap_err();
        assert!(matches!(error, WorkdirError::NoMemory { .. }));
    }
}
