//! A directory of a mounted volume as a storage.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use nix::sys::statvfs::statvfs;
use object_store::local::LocalFileSystem;

/// Opens the directory, and makes it where it is missing. A file that was written survives a loss of power, and so do
/// its name and its directories: `object_store` syncs them itself.
pub fn open(path: &Path) -> io::Result<LocalFileSystem> {
    if !path.is_absolute() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no absolute path"));
    }
    create(path)?;
    let store = LocalFileSystem::new_with_prefix(path).map_err(io::Error::other)?;
    Ok(store.with_fsync(true).with_automatic_cleanup(true))
}

/// Bytes that are free in the directory's file system for whoever is not root.
pub fn free_space(path: &Path) -> io::Result<u64> {
    let stat = statvfs(path)?;
    Ok(stat.blocks_available().saturating_mul(stat.fragment_size()))
}

/// Removes a directory with all that is in it, also what writes that were cut off left there under names that no
/// listing shows. One that is not there is removed already.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn create(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create(parent)?;
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => (),
            made => made?,
        }
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_made_with_its_parents_and_removed_with_what_was_cut_off() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/b");
        open(&path).unwrap();
        assert!(path.is_dir());
        assert!(free_space(&path).unwrap() > 0);
        fs::write(path.join("snapshot.db.age#1"), "cut off").unwrap();
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert!(!path.exists());
        assert_eq!(open(Path::new("a")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
