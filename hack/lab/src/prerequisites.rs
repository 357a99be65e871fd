//! The Debian packages that the lab's tools come from, installed where they are missing.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::images::Architecture;
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

/// What images for another architecture need beside them.
const CROSS: &[&str] = &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user-static"];

/// Installs the packages that are missing.
pub fn install(cache: &Cache, progress: &Progress) -> Result<()> {
    install_all(PACKAGES, cache, progress)
}

/// The same for images of these architectures, with Rust's standard library for them.
pub fn install_for_release(architectures: &[Architecture], cache: &Cache, progress: &Progress) -> Result<()> {
    for architecture in architectures {
        let is_own = Some(*architecture) == Architecture::own();
        if !is_own && Architecture::own() != Some(Architecture::Amd64) {
            bail!("images for {} are made on a machine of that architecture, or on amd64", architecture.name());
        }
        if !is_own {
            install_all(CROSS, cache, progress)?;
        }
        let task = progress.task(format!("Rust for {}", architecture.name()));
        let mut rustup = Command::new("rustup");
        rustup.args(["target", "add", &architecture.target()]);
        logged::run(&mut rustup, &cache.log("prerequisites"), &task)?;
        task.done();
    }
    Ok(())
}

fn install_all(packages: &'static [&'static str], cache: &Cache, progress: &Progress) -> Result<()> {
    let query = Command::new("dpkg-query")
        .args(["--show", "--showformat", "${Package} ${db:Status-Status}\\n"])
        .args(packages)
        .output()
        .context("failed to run dpkg-query: the lab runs on Debian")?;
    let missing = missing(packages, &String::from_utf8_lossy(&query.stdout));
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
fn missing(packages: &[&'static str], shown: &str) -> Vec<&'static str> {
    let installed: Vec<&str> = shown.lines().filter_map(|line| line.strip_suffix(" installed")).collect();
    packages.iter().copied().filter(|name| !installed.contains(name)).collect()
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
        assert_eq!(missing(PACKAGES, &shown), ["gcc", "socat"]);
    }
}
