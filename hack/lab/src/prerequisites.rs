//! The Debian packages that the lab's tools come from, installed where they are missing.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::logged;
use crate::progress::Progress;

/// What a fresh Debian needs beside Rust and Go.
const PACKAGES: &[&str] = &[
    // building
    "debian-archive-keyring",
    "debootstrap",
    "faketime",
    "gcc",
    "gnupg",
    "libc6-dev",
    "libprotobuf-dev",
    "libseccomp-dev",
    "pkg-config",
    "protobuf-compiler",
    "python3-venv",
    "xz-utils",
    // running the metadata cluster on this machine
    "ca-certificates",
    "conntrack",
    "ethtool",
    "iproute2",
    "iptables",
    "kmod",
    "nftables",
    "procps",
    "socat",
    // machines
    "openssh-client",
    "sshpass",
    "systemd-container",
    "util-linux",
];

/// Installs the packages that are missing.
pub fn install(cache: &Cache, progress: &Progress) -> Result<()> {
    let query = Command::new("dpkg-query")
        .args(["--show", "--showformat", "${Package} ${db:Status-Status}\\n"])
        .args(PACKAGES)
        .output()
        .context("failed to run dpkg-query: the lab runs on Debian")?;
    let missing = missing(&String::from_utf8_lossy(&query.stdout));
    if missing.is_empty() {
        return Ok(());
    }
    if !nix::unistd::geteuid().is_root() {
        bail!("these packages are missing, and only root can install them: {}", missing.join(" "));
    }
    let task = progress.task("Debian packages");
    let log = cache.log("prerequisites");
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").args(["--yes", "--quiet"]);
        apt
    };
    logged::run(apt().arg("update"), &log, &task)?;
    logged::run(apt().args(["install", "--no-install-recommends"]).args(&missing), &log, &task)?;
    task.done();
    Ok(())
}

/// The packages that `dpkg-query`'s lines do not show as installed.
fn missing(shown: &str) -> Vec<&'static str> {
    let installed: Vec<&str> = shown.lines().filter_map(|line| line.strip_suffix(" installed")).collect();
    PACKAGES.iter().copied().filter(|name| !installed.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_package_counts_as_missing() {
        let shown: String = PACKAGES
            .iter()
            .filter(|name| **name != "gcc")
            .map(|name| match *name {
                "socat" => "socat config-files\n".to_owned(),
                name => format!("{name} installed\n"),
            })
            .collect();
        assert_eq!(missing(&shown), ["gcc", "socat"]);
    }
}
