//! A machine's files: an overlay on the shared root filesystem, and what is written into it before the first start.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::definition::Definition;
use crate::command::Invocation;
use crate::network::{HOST_ADDRESS, PREFIX_LENGTH};
use crate::place::{write, write_private};

/// What must lie on the disk itself and not in the overlay: containerd makes overlays there, and one on another fails.
pub(super) const ON_DISK: [&str; 3] = ["containerd", "kubelet", "etcd"];

/// Where the machine's root directory is mounted.
pub(super) fn root(directory: &Path) -> PathBuf {
    directory.join("root")
}

/// Where the machine's own disk is.
pub(super) fn disk(directory: &Path) -> PathBuf {
    directory.join("disk")
}

/// Mounts the overlay unless it is mounted; a first mount is followed by writing the machine's own files.
pub(super) fn prepare(directory: &Path, definition: &Definition, authorized_key: &str) -> Result<()> {
    let root = root(directory);
    let (upper, work) = (directory.join("upper"), directory.join("work"));
    for path in [&root, &upper, &work] {
        fs::create_dir_all(path).with_context(|| format!("failed to create {}", path.display()))?;
    }
    fs::set_permissions(&upper, fs::Permissions::from_mode(0o755)).context("failed to open the root directory")?;
    for name in ON_DISK {
        let path = disk(directory).join(name);
        fs::create_dir_all(&path).with_context(|| format!("failed to create {}", path.display()))?;
    }
    if !mounted_below(directory)?.contains(&root) {
        // Volatile: a machine is not kept over a crash of the host, and an unmount need not wait for the whole disk.
        // The mark of a mount that such a crash ended would be refused.
        let mark = work.join("work/incompat");
        if mark.exists() {
            fs::remove_dir_all(&mark).with_context(|| format!("failed to remove {}", mark.display()))?;
        }
        let layers = format!(
            "volatile,lowerdir={},upperdir={},workdir={}",
            definition.rootfs.display(),
            upper.display(),
            work.display()
        );
        mount(Some("overlay"), &root, Some("overlay"), MsFlags::empty(), Some(layers.as_str()))
            .with_context(|| format!("failed to mount {}", root.display()))?;
    }
    // The mark is beside the overlay: what the machine does to its own files does not make it new again.
    let mark = directory.join("prepared");
    if !mark.exists() {
        customize(directory, &root, definition, authorized_key)?;
        write(&mark, "")?;
    }
    Ok(())
}

/// Unmounts all that is mounted in the machine's directory, whoever mounted it.
pub(super) fn unmount(directory: &Path) -> Result<()> {
    unmount_below(directory)
}

/// Unmounts everything at or below `directory`, the newest first.
pub(crate) fn unmount_below(directory: &Path) -> Result<()> {
    let mut mounts = mounted_below(directory)?;
    mounts.reverse();
    for path in mounts {
        match umount2(&path, MntFlags::MNT_DETACH) {
            // One that hung on another mount is gone with it.
            Ok(()) | Err(nix::errno::Errno::EINVAL | nix::errno::Errno::ENOENT) => {}
            Err(errno) => {
                return Err(errno).with_context(|| format!("failed to unmount {}", path.display()));
            }
        }
    }
    Ok(())
}

fn mounted_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let table = fs::read_to_string("/proc/self/mountinfo").context("failed to read the mount table")?;
    Ok(mount_points(&table).into_iter().filter(|path| path.starts_with(directory)).collect())
}

/// The mount points of a mountinfo table, in the order they were mounted.
fn mount_points(table: &str) -> Vec<PathBuf> {
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    points.map(|point| PathBuf::from(point.replace("\\040", " "))).collect()
}

fn customize(directory: &Path, root: &Path, definition: &Definition, authorized_key: &str) -> Result<()> {
    let etc = root.join("etc");
    write(&etc.join("hostname"), format!("{}\n", definition.name))?;
    write(&etc.join("hosts"), hosts(definition))?;
    // Empty: systemd makes a new one at the first start and keeps it.
    write(&etc.join("machine-id"), "")?;
    fs::remove_file(root.join("var/lib/dbus/machine-id")).ok();
    // Machines ask whom the host asks. A link into a service that does not run here would be an empty file.
    fs::remove_file(etc.join("resolv.conf")).ok();
    write(&etc.join("resolv.conf"), without_comments(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default()))?;
    write(&etc.join("systemd/network/10-lab.network"), network_file(definition))?;
    write_keys(directory, root, definition, authorized_key)
}

/// A comment says which program writes the file on this host: none does in the machine.
fn without_comments(resolv_conf: &str) -> String {
    let lines = resolv_conf.lines().filter(|line| !line.starts_with(['#', ';']));
    lines.map(|line| format!("{line}\n")).collect()
}

fn write_keys(directory: &Path, root: &Path, definition: &Definition, authorized_key: &str) -> Result<()> {
    let ssh = root.join("etc/ssh");
    for kind in ["rsa", "ecdsa", "ed25519"] {
        fs::remove_file(ssh.join(format!("ssh_host_{kind}_key"))).ok();
        fs::remove_file(ssh.join(format!("ssh_host_{kind}_key.pub"))).ok();
    }
    for name in ["ssh_host_ed25519_key", "ssh_host_ed25519_key.pub"] {
        let key = fs::read(directory.join(name)).with_context(|| format!("failed to read the host key {name}"))?;
        write_private(&ssh.join(name), key)?;
    }
    let public = fs::read_to_string(directory.join("ssh_host_ed25519_key.pub")).unwrap_or_default();
    write(&directory.join("known_hosts"), format!("{} {public}", definition.address))?;
    let home = root.join("root/.ssh");
    write_private(&home.join("authorized_keys"), format!("{authorized_key}\n"))?;
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).context("failed to protect root's .ssh")?;
    let mut sshd = String::from("UseDNS no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n");
    if let Some(password) = &definition.password {
        sshd = String::from("UseDNS no\nPermitRootLogin yes\nPasswordAuthentication yes\n");
        Invocation::new("chpasswd")
            .args(["--root".as_ref(), root.as_os_str(), "--crypt-method".as_ref(), "SHA512".as_ref()])
            .input(format!("root:{password}\n"))
            .run()
            .context("failed to set the machine's password")?;
    }
    write(&ssh.join("sshd_config.d/10-lab.conf"), sshd)
}

fn hosts(definition: &Definition) -> String {
    format!("127.0.0.1 localhost\n::1 localhost ip6-localhost\n{} {}\n", definition.address, definition.name)
}

/// The address and the routes. The name sorts before systemd's own file for containers, which would win otherwise.
///
/// The hardware address follows from the address: a machine that takes over the address of one that was removed is
/// reached at once, also by those who remember the old one.
fn network_file(definition: &Definition) -> String {
    let [a, b, c, d] = definition.address.octets();
    let mut text = format!(
        "[Match]\nName=host0\n\n[Link]\nMACAddress=02:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}\n\n[Network]\nAddress={}/{PREFIX_LENGTH}\nGateway={HOST_ADDRESS}\nLinkLocalAddressing=no\nIPv6AcceptRA=no\nLLDP=no\nEmitLLDP=no\n",
        definition.address
    );
    for route in &definition.routes {
        text.push_str(&format!("\n[Route]\nDestination={}\nGateway={}\n", route.destination, route.gateway));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::definition::{MachineOptions, Route};
    use super::*;

    fn definition() -> Definition {
        let routes = vec![Route { destination: "10.200.1.0/24".into(), gateway: "172.30.0.1".parse().unwrap() }];
        let options = MachineOptions { routes, ..MachineOptions::named("cp-1") };
        Definition::new(options, "172.30.0.17".parse().unwrap(), "/rootfs".into())
    }

    #[test]
    fn the_address_and_every_route_are_in_the_network_file() {
        let text = network_file(&definition());
        assert!(text.contains("Address=172.30.0.17/24\nGateway=172.30.0.1\n"), "{text}");
        assert!(text.contains("LinkLocalAddressing=no"), "{text}");
        assert!(text.contains("MACAddress=02:00:ac:1e:00:11\n"), "{text}");
        assert!(text.ends_with("[Route]\nDestination=10.200.1.0/24\nGateway=172.30.0.1\n"), "{text}");
    }

    #[test]
    fn a_machine_knows_its_own_name() {
        assert!(hosts(&definition()).contains("172.30.0.17 cp-1\n"));
    }

    #[test]
    fn mount_points_are_read_in_order_and_with_blanks() {
        let table = "22 1 8:1 / / rw - ext4 /dev/vda rw\n30 22 0:5 / /lab/a\\040b rw - overlay overlay rw\n";
        assert_eq!(mount_points(table), [PathBuf::from("/"), PathBuf::from("/lab/a b")]);
    }
}
