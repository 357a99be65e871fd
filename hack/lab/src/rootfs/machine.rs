//! The root filesystem that all machines of the lab share, each under an overlay of its own.

use std::path::PathBuf;

use anyhow::{Result, bail};

use super::{debootstrap, recipe_hash};
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
fn place(cache: &Cache) -> PathBuf {
    let recipe = recipe_hash(&[PACKAGES, SCRIPT, include_str!("debootstrap.sh")]);
    cache.rootfs().join(format!("machine-bookworm-{recipe}"))
}

/// The root filesystem, which must be there.
pub fn find(cache: &Cache) -> Result<PathBuf> {
    let place = place(cache);
    if !place.is_dir() {
        bail!("{} is missing: run `lab build rootfs`", place.display());
    }
    Ok(place)
}

/// Makes the root filesystem if it is not there.
pub fn build(cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    let place = place(cache);
    if !place.is_dir() {
        let task = progress.task("root filesystem of machines");
        publish(&place, |draft| debootstrap(draft, None, PACKAGES, SCRIPT, cache, &task))?;
        task.done();
    }
    Ok(place)
}
