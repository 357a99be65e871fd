//! The cache: everything that was built once and survives `lab down`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
pub use bundle::publish::{create_dir, publish};
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
