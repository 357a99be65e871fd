//! The root filesystems that the machines of the lab share, one for each release, each under an overlay of its own.

use std::path::PathBuf;

use anyhow::{Result, bail};

use super::{Release, debootstrap, recipe_hash};
use crate::cache::{Cache, publish};
use crate::progress::Progress;

/// What a server has that Kubernetes can be installed on, and no more: the installation must bring the rest. keepalived
/// and haproxy are in it since machines of the lab have no package source.
const PACKAGES: &str = "systemd,systemd-sysv,systemd-timesyncd,dbus,openssh-server,sudo,python3,\
    iproute2,iputils-ping,nftables,iptables,conntrack,ebtables,ethtool,socat,kmod,procps,ca-certificates,\
    busybox-static,keepalived,haproxy";

/// What is set up in it.
const SCRIPT: &str = include_str!("machine.sh");

/// Where the root filesystem is or will be.
fn place(cache: &Cache, release: Release) -> PathBuf {
    let recipe = recipe_hash(&[PACKAGES, SCRIPT, include_str!("debootstrap.sh")]);
    cache.rootfs().join(format!("machine-{}-{recipe}", release.code_name()))
}

/// The root filesystem, which must be there.
pub fn find(cache: &Cache, release: Release) -> Result<PathBuf> {
    let place = place(cache, release);
    if !place.is_dir() {
        bail!("{} is missing: run `lab build rootfs`", place.display());
    }
    Ok(place)
}

/// Makes the root filesystems that are not there.
pub fn build(cache: &Cache, progress: &Progress) -> Result<()> {
    for release in Release::ALL {
        let place = place(cache, release);
        if !place.is_dir() {
            let task = progress.task(format!("root filesystem of machines, {}", release.code_name()));
            publish(&place, |draft| debootstrap(draft, (release, None), PACKAGES, SCRIPT, cache, &task))?;
            task.done();
        }
    }
    Ok(())
}
