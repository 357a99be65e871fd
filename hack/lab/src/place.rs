//! Where the lab keeps its state on disk.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use nix::fcntl::{Flock, FlockArg};

const DEFAULT: &str = "/var/lib/clusterwright-lab";

/// The lab's directory and the names of what is in it.
#[derive(Debug, Clone)]
pub struct Place {
    root: PathBuf,
}

impl Place {
    /// The directory that `CLUSTERWRIGHT_LAB_DIR` names, or `/var/lib/clusterwright-lab`.
    pub fn from_env() -> Self {
        let root = std::env::var_os("CLUSTERWRIGHT_LAB_DIR").filter(|value| !value.is_empty());
        Self::at(root.map_or_else(|| PathBuf::from(DEFAULT), PathBuf::from))
    }

    /// A lab directory at `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The lab's name among the control groups of the host: a lab in another directory has another.
    pub fn name(&self) -> String {
        match self.root.to_str() {
            Some(DEFAULT) => "clusterwright-lab".to_owned(),
            _ => format!("clusterwright-lab{}", self.root.to_string_lossy().replace('/', "-")),
        }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// All machines' directories.
    pub fn machines(&self) -> PathBuf {
        self.root.join("machines")
    }

    /// One machine's directory.
    pub fn machine(&self, name: &str) -> PathBuf {
        self.machines().join(name)
    }

    /// What the metadata cluster keeps.
    pub fn metadata(&self) -> PathBuf {
        self.root.join("metadata")
    }

    /// The metadata cluster's administrator kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.metadata().join("kubeconfig")
    }

    /// Pid files of the background processes.
    pub fn pids(&self) -> PathBuf {
        self.root.join("pids")
    }

    /// Logs of the background processes.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The private SSH key that opens every machine of the lab.
    pub fn ssh_key(&self) -> PathBuf {
        self.root.join("ssh/id_ed25519")
    }

    /// Takes one of the lab's locks: `machines` by whoever chooses a name or an address, `up` by whoever starts the
    /// lab.
    pub fn lock(&self, of: &str) -> Result<Flock<File>> {
        fs::create_dir_all(&self.root).with_context(|| format!("failed to create {}", self.root.display()))?;
        let path = self.root.join(format!("{of}.lock"));
        let file = File::create(&path).with_context(|| format!("failed to create {}", path.display()))?;
        Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, errno)| anyhow!(errno))
            .with_context(|| format!("failed to lock {}", path.display()))
    }
}

/// Writes a file and the directories above it.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("failed to create {}", parent.display()))?;
    }
    fs::write(path, content).with_context(|| format!("failed to write {}", path.display()))
}

/// Writes a file that only root may read.
pub fn write_private(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    write(path, "")?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        .with_context(|| format!("failed to protect {}", path.display()))?;
    write(path, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labs_in_two_directories_share_no_control_group() {
        assert_eq!(Place::at(DEFAULT).name(), "clusterwright-lab");
        assert_eq!(Place::at("/tmp/a").name(), "clusterwright-lab-tmp-a");
    }
}
