//! Programs of another architecture run on this machine: by qemu-user, which the kernel starts for them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::images::Architecture;

const PLACE: &str = "/proc/sys/fs/binfmt_misc";

/// Lets the kernel run programs of this architecture. It stays so until the machine starts anew.
pub fn enable(architecture: Architecture) -> Result<()> {
    if Some(architecture) == Architecture::own() {
        return Ok(());
    }
    let name = format!("qemu-{}", architecture.machine());
    if !Path::new(PLACE).join("register").exists() {
        let mounted = Command::new("mount").args(["-t", "binfmt_misc", "binfmt_misc", PLACE]).status();
        ensure!(mounted.context("failed to run mount")?.success(), "failed to mount binfmt_misc");
    }
    if Path::new(PLACE).join(&name).exists() {
        return Ok(());
    }
    let rule = format!("/usr/lib/binfmt.d/{name}.conf");
    let text = fs::read_to_string(&rule)
        .with_context(|| format!("failed to read {rule}: the package qemu-user-static has it"))?;
    fs::write(Path::new(PLACE).join("register"), text.trim()).with_context(|| format!("failed to register {name}"))
}
