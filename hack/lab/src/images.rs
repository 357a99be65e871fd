//! The images: which there are, and where their archives lie. An archive holds one image.

use std::borrow::Cow;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::cache::Cache;

pub mod archive;
pub mod debian;
pub mod layout;
pub mod materials;
pub mod ours;
pub mod provenance;
pub mod release;
pub mod scratch;

/// The operator's image.
pub const OPERATOR: Reference = Reference { name: "clusterwright.dev/operator", version: Cow::Borrowed("dev") };
/// The executor's image.
pub const EXECUTOR: Reference = Reference { name: "clusterwright.dev/executor", version: Cow::Borrowed("dev") };
/// What holds a Pod's namespaces open; the version is the one that kubeadm and containerd expect.
pub const PAUSE: Reference = Reference { name: "registry.k8s.io/pause", version: Cow::Borrowed("3.10.1") };
/// The same of the minors after the lab's.
pub const NEWER_PAUSE: (Reference, &str) =
    (Reference { name: "registry.k8s.io/pause", version: Cow::Borrowed("3.10.2") }, "1.36");
/// A shell and small tools, for smoke tests and the demo.
pub const BUSYBOX: Reference = Reference { name: "clusterwright.dev/busybox", version: Cow::Borrowed("1.35") };

/// An image's name and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Registry and repository.
    pub name: &'static str,
    /// The tag.
    pub version: Cow<'static, str>,
}

impl Reference {
    /// The archive's path, there or not.
    pub fn archive(&self, cache: &Cache) -> PathBuf {
        cache.images().join(self.file())
    }

    /// The archive, which must be there.
    pub fn find(&self, cache: &Cache) -> Result<PathBuf> {
        let archive = self.archive(cache);
        if !archive.is_file() {
            bail!("{} is missing: run `lab build images`", archive.display());
        }
        Ok(archive)
    }

    /// The archive's file name, as in the bundle.
    pub fn file(&self) -> String {
        let last = self.name.rsplit('/').next().unwrap_or(self.name);
        format!("{last}-{}-linux-{}.tar", self.version, architecture())
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.name, self.version)
    }
}

/// This machine's architecture as images and Kubernetes name it.
pub fn architecture() -> &'static str {
    Architecture::own().map_or(std::env::consts::ARCH, Architecture::name)
}

/// An architecture that our images are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Architecture {
    /// x86-64.
    Amd64,
    /// 64 bits of ARM.
    Arm64,
}

impl Architecture {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// This machine's, if it is one of them.
    pub fn own() -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.machine() == std::env::consts::ARCH)
    }

    /// As images, Kubernetes and Debian name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// As kernels and Python name it.
    pub fn machine(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }

    /// As Rust names it.
    pub fn target(self) -> String {
        format!("{}-unknown-linux-gnu", self.machine())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_named_for_the_last_part_of_the_image() {
        let coredns = Reference { name: "registry.k8s.io/coredns/coredns", version: Cow::Borrowed("v1.14.7") };
        assert_eq!(coredns.file(), format!("coredns-v1.14.7-linux-{}.tar", architecture()));
        assert_eq!(coredns.to_string(), "registry.k8s.io/coredns/coredns:v1.14.7");
    }
}
