//! The cache: everything that was built once and survives `lab down`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use nix::fcntl::{Flock, FlockArg};

/// The cache directory and the names of what is in it.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The directory that `CLUSTERWRIGHT_CACHE` names, or `~/.cache/clusterwright`.
    pub fn from_env() -> Self {
        let named = std::env::var_os("CLUSTERWRIGHT_CACHE").filter(|value| !value.is_empty());
        let home = || std::env::var_os("HOME").map_or_else(|| PathBuf::from("/root"), PathBuf::from);
        Self::at(named.map_or_else(|| home().join(".cache/clusterwright"), PathBuf::from))
    }

    /// A cache at `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Programs by component and version.
    pub fn programs(&self) -> PathBuf {
        self.root.join("programs")
    }

    /// Root filesystems.
    pub fn rootfs(&self) -> PathBuf {
        self.root.join("rootfs")
    }

    /// Image archives.
    pub fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    /// Layers that several image archives share or that take long to make.
    pub fn layers(&self) -> PathBuf {
        self.root.join("layers")
    }

    /// The artifact bundle.
    pub fn bundle(&self) -> PathBuf {
        self.root.join("bundle")
    }

    /// The artifact bundle for tests of upgrades: the other one, and an older minor of Kubernetes.
    pub fn upgrades_bundle(&self) -> PathBuf {
        self.root.join("bundle-upgrades")
    }

    /// Debian packages and Python wheels as they were downloaded.
    pub fn downloads(&self, of: &str) -> PathBuf {
        self.root.join("downloads").join(of)
    }

    /// The log of one tool's work.
    pub fn log(&self, of: &str) -> PathBuf {
        self.root.join("logs").join(format!("{of}.log"))
    }

    /// Holds off every other build in this cache until the result is dropped.
    pub fn lock(&self) -> Result<Flock<fs::File>> {
        create_dir(&self.root)?;
        let path = self.root.join("build.lock");
        let file = fs::File::create(&path).with_context(|| format!("failed to create {}", path.display()))?;
        Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, errno)| anyhow!(errno))
            .with_context(|| format!("failed to lock {}", path.display()))
    }
}

/// Creates a directory and those above it.
pub fn create_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("failed to create {}", path.display()))
}

/// Makes `path` (a file or a directory) whole or not at all: `make` works on a name beside it, which is then
/// renamed. What a crashed run left under that name is removed first.
pub fn publish(path: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let parent = path.parent().context("a cache entry lies in a directory")?;
    let name = path.file_name().context("a cache entry has a name")?.to_string_lossy();
    create_dir(parent)?;
    let draft = parent.join(format!(".{name}.draft"));
    remove(&draft)?;
    make(&draft)?;
    remove(path)?;
    fs::rename(&draft, path).with_context(|| format!("failed to move {} into place", path.display()))
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
}
