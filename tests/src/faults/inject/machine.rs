//! What is broken on a machine, from its inside, and its cable.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use lab::machines::Machine;

/// Gives containerd a disk of its own, which can be filled without filling that of all.
pub fn own_disk(machine: &Machine) -> Result<()> {
    inside(machine, "mount -t tmpfs -o size=4g,mode=0711 tmpfs /var/lib/containerd").map(drop)
}

/// Leaves next to nothing of that disk.
pub fn fill_disk(machine: &Machine) -> Result<()> {
    inside(
        machine,
        // What is written meanwhile may need more than was left: once more, then.
        "for _ in 1 2 3 4 5 6 7 8 9 10; do mount -o remount,size=$(( $(df --output=used -k /var/lib/containerd | \
         tail -n 1) + 64 ))k /var/lib/containerd && exit; done; exit 1",
    )
    .map(drop)
}

/// Gives the room back.
pub fn free_disk(machine: &Machine) -> Result<()> {
    inside(machine, "mount -o remount,size=4g /var/lib/containerd").map(drop)
}

/// Another host key, also for who has a connection.
pub fn swap_host_key(machine: &Machine) -> Result<()> {
    inside(
        machine,
        "cd /etc/ssh && mkdir -p kept && cp -p ssh_host_ed25519_key ssh_host_ed25519_key.pub kept/ && \
         rm ssh_host_ed25519_key ssh_host_ed25519_key.pub && ssh-keygen -q -t ed25519 -N '' -f ssh_host_ed25519_key && \
         systemctl restart ssh && { pkill -f '^sshd: root' || true; }",
    )
    .map(drop)
}

/// The key that is pinned.
pub fn restore_host_key(machine: &Machine) -> Result<()> {
    inside(
        machine,
        "cd /etc/ssh && mv -f kept/ssh_host_ed25519_key kept/ssh_host_ed25519_key.pub . && systemctl restart ssh",
    )
    .map(drop)
}

/// A private key that opens nothing.
pub fn another_key() -> Result<String> {
    let directory = tempfile::tempdir().context("failed to make a directory for a key")?;
    let path = directory.path().join("key");
    lab::ssh::ensure_key(&path, "opens nothing")?;
    std::fs::read_to_string(&path).context("failed to read the key")
}

/// The host's end of the machine's cable. Looked up before it is pulled, since that takes a while.
pub fn cable(machine: &Machine) -> Result<String> {
    let number = inside(machine, "cat /sys/class/net/host0/iflink")?;
    let links = std::fs::read_dir("/sys/class/net").context("failed to list the links")?;
    let is_its = |link: &std::fs::DirEntry| {
        let index = std::fs::read_to_string(link.path().join("ifindex"));
        index.is_ok_and(|index| index.trim() == number.trim())
    };
    let link = links.flatten().find(is_its);
    let name = link.map(|link| link.file_name().to_string_lossy().into_owned());
    name.with_context(|| format!("{} has no cable", machine.name()))
}

/// Pulls a cable.
pub fn pull(cable: &str) -> Result<()> {
    let status = Command::new("ip").args(["link", "set", cable, "down"]).status();
    ensure!(status.context("failed to run ip")?.success(), "failed to pull the cable {cable}");
    Ok(())
}

fn inside(machine: &Machine, command: &str) -> Result<String> {
    let output = machine.enter(command)?;
    ensure!(output.ok(), "{command:?} in {} failed with {}: {}", machine.name(), output.code, output.stderr.trim());
    Ok(output.stdout)
}
