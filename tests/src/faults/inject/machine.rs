//! What is broken on a machine, from its inside.

use anyhow::{Context, Result, ensure};
use lab::machines::Machine;

/// Gives containerd a disk of its own, which can be filled without filling that of all.
pub fn own_disk(machine: &Machine) -> Result<()> {
    inside(
        machine,
        "mount -t tmpfs -o size=4g,mode=0711 tmpfs /var/lib/containerd",
    )
}

/// Leaves next to nothing of that disk.
pub fn fill_disk(machine: &Machine) -> Result<()> {
    inside(
        machine,
        "mount -o remount,size=$(( $(df --output=used -k /var/lib/containerd | tail -n 1) + 64 ))k /var/lib/containerd",
    )
}

/// Gives the room back.
pub fn free_disk(machine: &Machine) -> Result<()> {
    inside(machine, "mount -o remount,size=4g /var/lib/containerd")
}

/// Another host key, also for who has a connection.
pub fn swap_host_key(machine: &Machine) -> Result<()> {
    inside(
        machine,
        "cd /etc/ssh && mkdir -p kept && cp -p ssh_host_ed25519_key ssh_host_ed25519_key.pub kept/ && \
         rm ssh_host_ed25519_key ssh_host_ed25519_key.pub && ssh-keygen -q -t ed25519 -N '' -f ssh_host_ed25519_key && \
         systemctl restart ssh && { pkill -f '^sshd: root' || true; }",
    )
}

/// The key that is pinned.
pub fn restore_host_key(machine: &Machine) -> Result<()> {
    inside(
        machine,
        "cd /etc/ssh && mv -f kept/ssh_host_ed25519_key kept/ssh_host_ed25519_key.pub . && systemctl restart ssh",
    )
}

/// A private key that opens nothing.
pub fn another_key() -> Result<String> {
    let directory = tempfile::tempdir().context("failed to make a directory for a key")?;
    let path = directory.path().join("key");
    lab::ssh::ensure_key(&path, "opens nothing")?;
    std::fs::read_to_string(&path).context("failed to read the key")
}

fn inside(machine: &Machine, command: &str) -> Result<()> {
    let output = machine.enter(command)?;
    ensure!(
        output.ok(),
        "{command:?} in {} failed with {}: {}",
        machine.name(),
        output.code,
        output.stderr.trim()
    );
    Ok(())
}
