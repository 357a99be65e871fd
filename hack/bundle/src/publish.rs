//! Files and directories that are there whole or not at all.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

/// Creates a directory and those above it.
pub fn create_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("failed to create {}", path.display()))
}

/// Makes `path` (a file or a directory) whole or not at all: `make` works on a name beside it, which is then
/// renamed. What a crashed run left under that name is removed first.
pub fn publish(path: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let parent = path.parent().with_context(|| format!("{} lies in no directory", path.display()))?;
    let name = path.file_name().with_context(|| format!("{} has no name", path.display()))?.to_string_lossy();
    create_dir(parent)?;
    let draft = parent.join(format!(".{name}.draft"));
    remove(&draft)?;
    make(&draft)?;
    // A file takes the place of a file at once.
    if path.is_dir() || draft.is_dir() {
        remove(path)?;
    }
    fs::rename(&draft, path).with_context(|| format!("failed to move {} into place", path.display()))
}

/// Publishes a value as indented JSON.
pub fn publish_json(path: &Path, value: &impl Serialize) -> Result<()> {
    publish(path, |draft| {
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        fs::write(draft, text).with_context(|| format!("failed to write {}", draft.display()))
    })
}

fn remove(path: &Path) -> Result<()> {
    let gone = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => return Ok(()),
    };
    gone.with_context(|| format!("failed to remove {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_make_leaves_the_old_entry() {
        let dir = tempfile::tempdir().unwrap();
        let entry = dir.path().join("entry");
        publish(&entry, |draft| Ok(fs::write(draft, "old")?)).unwrap();
        publish(&entry, |draft| {
            fs::write(draft, "half")?;
            anyhow::bail!("cut off")
        })
        .unwrap_err();
        assert_eq!(fs::read_to_string(&entry).unwrap(), "old");
    }

    #[test]
    fn a_directory_replaces_what_a_crashed_run_left() {
        let dir = tempfile::tempdir().unwrap();
        let entry = dir.path().join("entry");
        fs::create_dir_all(dir.path().join(".entry.draft/half")).unwrap();
        publish(&entry, |draft| Ok(fs::create_dir(draft)?)).unwrap();
        assert!(entry.is_dir());
        assert!(!entry.join("half").exists());
    }

    #[test]
    fn a_directory_that_is_there_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let entry = dir.path().join("entry");
        fs::create_dir_all(entry.join("old")).unwrap();
        publish(&entry, |draft| Ok(fs::create_dir(draft)?)).unwrap();
        assert!(!entry.join("old").exists());
    }
}
