//! Root filesystems made from Debian's packages.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::cache::{Cache, create_dir};
use crate::images::Architecture;
use crate::logged;
use crate::progress::Task;

pub mod container;
pub mod machine;

/// A release of Debian.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Release {
    /// Bookworm.
    #[default]
    Debian12,
    /// Trixie.
    Debian13,
}

impl Release {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Debian12, Self::Debian13];

    /// As Debian's archive names it.
    fn code_name(self) -> &'static str {
        match self {
            Self::Debian12 => "bookworm",
            Self::Debian13 => "trixie",
        }
    }
}

/// A short name for a recipe: another text, another name. Comments do not count.
pub fn recipe_hash(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
            hash.update(line);
            hash.update("\n");
        }
        hash.update("\0");
    }
    hex::encode(&hash.finalize()[..6])
}

/// Unpacks and configures a minimal Debian with `packages` into `root`, then runs `script` in it.
///
/// Both happen in a mount namespace of their own: whatever debootstrap mounts is gone when it ends, in any way.
fn debootstrap(
    root: &Path,
    (release, foreign): (Release, Option<Architecture>),
    packages: &str,
    script: &str,
    cache: &Cache,
    task: &Task,
) -> Result<()> {
    let downloads = cache.downloads("debian");
    create_dir(&downloads)?;
    let name = root.file_name().context("a root filesystem has a name")?.to_string_lossy().into_owned();
    let mut build = Command::new("unshare");
    build
        .args(["--mount", "--propagation", "private", "sh", "-euc", include_str!("rootfs/debootstrap.sh"), "sh"])
        .arg(root)
        .args([release.code_name(), packages, script])
        .arg(&downloads)
        .arg(foreign.map_or("", Architecture::name));
    logged::run(&mut build, &cache.log(name.trim_matches('.')), task)
}

#[cfg(test)]
mod tests {
    use super::recipe_hash;

    #[test]
    fn another_recipe_gets_another_name() {
        assert_eq!(recipe_hash(&["a", "bc"]), recipe_hash(&["a", "bc"]));
        assert_ne!(recipe_hash(&["a", "bc"]), recipe_hash(&["ab", "c"]));
    }

    #[test]
    fn a_comment_changes_no_recipe() {
        assert_eq!(recipe_hash(&["# why\nrun"]), recipe_hash(&["run"]));
    }
}
