//! The root filesystem that our images build on where no base image can be pulled.

use std::path::PathBuf;

use anyhow::Result;

use super::{Release, debootstrap, recipe_hash};
use crate::cache::{Cache, publish};
use crate::progress::Progress;

const SCRIPT: &str = "rm -f /etc/hostname /etc/resolv.conf; : > /etc/resolv.conf";

/// Makes the root filesystem if it is not there.
pub fn build(cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    let recipe = recipe_hash(&[SCRIPT, include_str!("debootstrap.sh")]);
    let place = cache.rootfs().join(format!("container-bookworm-{recipe}"));
    if !place.is_dir() {
        let task = progress.task("root filesystem of our images");
        publish(&place, |draft| debootstrap(draft, Release::Debian12, "", SCRIPT, cache, &task))?;
        task.done();
    }
    Ok(place)
}
