//! The process behind a machine: runs systemd-nspawn, and runs it again when the machine reboots.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::Machine;
use super::definition::Definition;
use super::filesystem;
use crate::command::exit_code;
use crate::network::BRIDGE;
use crate::place::{Place, write};
use crate::processes::{Identity, enter_and_run};

/// What nspawn exits with when the machine asked for a reboot that nspawn, told to keep its unit, leaves to us.
const REBOOT: i32 = 133;
const NSPAWN_FILE: &str = "nspawn.json";

/// Runs the machine until it is off. This is the whole life of the command `lab supervise NAME`.
pub fn supervise(place: &Place, name: &str) -> Result<()> {
    let machine = super::find(place, name)?;
    loop {
        let code = run_once(&machine)?;
        println!("machine {name}: systemd-nspawn exited with {code}");
        if code != REBOOT {
            return Ok(());
        }
    }
}

fn run_once(machine: &Machine) -> Result<i32> {
    let group = machine.group();
    group.create(machine.definition.memory_mib)?;
    // systemd of the run before left its groups; the new one would take them for its own services'.
    group.remove_children()?;
    let args = nspawn_arguments(&machine.directory(), &machine.definition);
    let words = enter_and_run(&group.entrances(), "systemd-nspawn".as_ref(), &args);
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .env("SYSTEMD_SECCOMP", "0")
        .stdin(Stdio::null())
        .spawn()
        .context("failed to start systemd-nspawn")?;
    let pid = i32::try_from(child.id()).context("failed to read a pid")?;
    if let Some(identity) = Identity::read(pid) {
        let text = serde_json::to_string(&identity).context("failed to encode a pid file")?;
        write(&machine.directory().join(NSPAWN_FILE), text)?;
    }
    Ok(exit_code(child.wait().context("failed to wait for systemd-nspawn")?))
}

/// The running systemd-nspawn of the machine in `directory`.
pub(super) fn nspawn(directory: &Path) -> Option<Identity> {
    let text = fs::read_to_string(directory.join(NSPAWN_FILE)).ok()?;
    serde_json::from_str::<Identity>(&text).ok().filter(Identity::alive)
}

/// The machine's init: nspawn's only child.
pub(super) fn init(directory: &Path) -> Option<Identity> {
    nspawn(directory)?.children().into_iter().next()
}

fn nspawn_arguments(directory: &Path, definition: &Definition) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec![
        "--quiet".into(),
        "--register=no".into(),
        "--keep-unit".into(),
        format!("--machine={}", definition.name).into(),
        format!("--hostname={}", definition.name).into(),
        format!("--network-bridge={BRIDGE}").into(),
        "--boot".into(),
        "--resolv-conf=off".into(),
        "--timezone=off".into(),
        "--link-journal=no".into(),
        "--capability=all".into(),
        "--system-call-filter=@keyring bpf".into(),
        "--bind=/dev/kmsg".into(),
    ];
    for name in filesystem::ON_DISK {
        args.push(bind("--bind", &filesystem::disk(directory).join(name), &Path::new("/var/lib").join(name)));
    }
    for extra in &definition.binds {
        args.push(bind("--bind-ro", &extra.source, &extra.target));
    }
    let mut root = OsString::from("--directory=");
    root.push(filesystem::root(directory));
    args.push(root);
    // For init: newer systemd starts with control groups of version 1 only if it is told to; older does not know it.
    args.push("SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1".into());
    args
}

fn bind(option: &str, source: &Path, target: &Path) -> OsString {
    format!("{option}={}:{}", source.display(), target.display()).into()
}

#[cfg(test)]
mod tests {
    use super::super::definition::{Bind, MachineOptions};
    use super::*;

    #[test]
    fn what_containers_need_lies_on_the_disk_and_programs_are_read_only() {
        let binds = vec![Bind { source: "/cache/programs".into(), target: "/opt/programs".into() }];
        let options = MachineOptions { binds, ..MachineOptions::named("meta-2") };
        let definition = Definition::new(options, "172.30.0.2".parse().unwrap(), "/rootfs".into());
        let args: Vec<String> = nspawn_arguments(Path::new("/lab/machines/meta-2"), &definition)
            .into_iter()
            .map(|arg| arg.into_string().unwrap())
            .collect();
        for wanted in [
            "--bind=/lab/machines/meta-2/disk/containerd:/var/lib/containerd",
            "--bind=/lab/machines/meta-2/disk/etcd:/var/lib/etcd",
            "--bind-ro=/cache/programs:/opt/programs",
            "--directory=/lab/machines/meta-2/root",
            "--keep-unit",
        ] {
            assert!(args.iter().any(|arg| arg == wanted), "{wanted} is not in {args:?}");
        }
    }
}
