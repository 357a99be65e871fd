//! What a machine is, as written in its directory: enough to start it again after anything.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::place::write_private;
use crate::rootfs::Release;

/// The file's name in a machine's directory. It is written last: a directory without it is a machine half made.
pub(super) const FILE: &str = "machine.json";

/// What is asked of a new machine.
#[derive(Debug, Clone, Default)]
pub struct MachineOptions {
    /// Name and hostname: an RFC 1123 label.
    pub name: String,
    /// Memory limit in MiB; without it the machine may use the host's.
    pub memory_mib: Option<u32>,
    /// Address on the lab's network; without it the lowest free one.
    pub address: Option<Ipv4Addr>,
    /// A password for root over SSH; without it only the lab's key opens the machine.
    pub password: Option<String>,
    /// Directories of the host to show in the machine, read-only.
    pub binds: Vec<Bind>,
    /// Routes beside the default one.
    pub routes: Vec<Route>,
    /// Whether the machine is a node of the metadata cluster.
    pub metadata_node: bool,
    /// What it runs.
    pub release: Release,
}

impl MachineOptions {
    /// A machine of that name with nothing special.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}

/// A directory of the host that the machine sees, read-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// Where it is on the host.
    pub source: PathBuf,
    /// Where the machine sees it.
    pub target: PathBuf,
}

/// A route over another machine or the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The network, as address/length.
    pub destination: String,
    /// The next hop.
    pub gateway: Ipv4Addr,
}

/// A machine's definition.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// Name and hostname.
    pub name: String,
    /// Address on the lab's network.
    pub address: Ipv4Addr,
    /// The root filesystem that it lies over.
    pub rootfs: PathBuf,
    /// Memory limit in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// Root's password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Directories of the host.
    #[serde(default)]
    pub binds: Vec<Bind>,
    /// Routes beside the default one.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// Whether it is a node of the metadata cluster.
    #[serde(default)]
    pub metadata_node: bool,
}

impl Definition {
    pub(super) fn new(options: MachineOptions, address: Ipv4Addr, rootfs: PathBuf) -> Self {
        let MachineOptions { name, memory_mib, address: _, password, binds, routes, metadata_node, release: _ } =
            options;
        Self { name, address, rootfs, memory_mib, password, binds, routes, metadata_node }
    }

    pub(super) fn load(directory: &Path) -> Result<Self> {
        let path = directory.join(FILE);
        let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("failed to understand {}", path.display()))
    }

    pub(super) fn save(&self, directory: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).context("failed to encode a machine")?;
        write_private(&directory.join(FILE), text)
    }
}

/// Refuses what cannot be a hostname.
pub(super) fn check_name(name: &str) -> Result<()> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let edge = |c: Option<char>| c.is_some_and(|c| c != '-' && inner(c));
    if name.len() > 63 || !name.chars().all(inner) || !edge(name.chars().next()) || !edge(name.chars().last()) {
        bail!("{name:?} is no machine name: at most 63 of a-z, 0-9 and -, with neither end a -");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_host_names_are_names() {
        for good in ["a", "cp-1", "rack3-node07", "0"] {
            check_name(good).unwrap();
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a/b", "..", &"x".repeat(64)] {
            check_name(bad).unwrap_err();
        }
    }

    #[test]
    fn a_definition_is_read_back_as_written() {
        let directory = tempfile::tempdir().unwrap();
        let options = MachineOptions { memory_mib: Some(512), ..MachineOptions::named("a") };
        Definition::new(options, Ipv4Addr::new(172, 30, 0, 10), "/rootfs".into()).save(directory.path()).unwrap();
        let read = Definition::load(directory.path()).unwrap();
        assert_eq!((read.name.as_str(), read.memory_mib), ("a", Some(512)));
    }
}
