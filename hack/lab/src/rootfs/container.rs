//! The root filesystem that our images build on where no base image can be pulled.

use std::path::PathBuf;

use anyhow::Result;

use super::{Release, debootstrap, recipe_hash};
use crate::cache::{Cache, publish};
use crate::images::Architecture;
use crate::progress::Progress;

/// Nothing in it says when it was made.
const SCRIPT: &str = "rm -f /etc/hostname /etc/resolv.conf; : > /etc/resolv.conf; \
                      sed -i 's/^\\([^:]*:[^:]*\\):[0-9]*:/\\1:1:/' /etc/shadow; rm -f /etc/*- /var/cache/ldconfig/aux-cache";

/// Makes the root filesystem if it is not there: for this machine, where no architecture is named. What is in one for
/// another is run by qemu-user meanwhile (`crate::emulation`).
pub fn build(architecture: Option<Architecture>, cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    let foreign = architecture.filter(|it| Some(*it) != Architecture::own());
    let recipe = recipe_hash(&[SCRIPT, include_str!("debootstrap.sh")]);
    let place = cache.rootfs().join(match foreign {
        None => format!("container-bookworm-{recipe}"),
        Some(foreign) => format!("container-bookworm-{}-{recipe}", foreign.name()),
    });
    if !place.is_dir() {
        let task = progress.task("root filesystem of our images");
        publish(&place, |draft| debootstrap(draft, (Release::Debian12, foreign), "", SCRIPT, cache, &task))?;
        task.done();
    }
    Ok(place)
}
