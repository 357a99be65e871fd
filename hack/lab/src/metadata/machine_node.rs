//! The metadata cluster's second node: a machine of the lab, so that a node can be lost.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::node::Node;
use super::{Metadata, NODES};
use crate::machines::{self, Bind, Machine, MachineOptions, Route};
use crate::network::POD_NETWORK;
use crate::place::{write, write_private};
use crate::programs::component;

/// Where the machine sees the programs of the host's cache.
const PROGRAMS: &str = "/opt/lab";
const ETC: &str = "/etc/lab";

/// Makes the machine and starts it without waiting.
pub(super) fn launch(metadata: &Metadata) -> Result<()> {
    let (name, address) = NODES[1];
    let machine = match machines::find(&metadata.place, name) {
        Ok(machine) => machine,
        Err(_) => {
            let mut binds = Vec::new();
            for of in ["kubernetes", "containerd", "runc", "cni-plugins"] {
                let source = fs::canonicalize(metadata.programs.bin(component(of)?))
                    .with_context(|| format!("failed to find the programs of {of}"))?;
                binds.push(Bind { source, target: Path::new(PROGRAMS).join(of) });
            }
            let options = MachineOptions {
                address: Some(address),
                binds,
                routes: vec![Route { destination: "10.200.1.0/24".into(), gateway: NODES[0].1 }],
                metadata_node: true,
                ..MachineOptions::named(name)
            };
            machines::define(&metadata.place, metadata.rootfs.clone(), options)?
        }
    };
    machine.prepare()?;
    write_files(metadata, &machine)?;
    machine.launch()
}

/// Starts the kubelet and kube-proxy in it, now and after each of its starts.
pub(super) fn start(metadata: &Metadata) -> Result<()> {
    let machine = find(metadata)?;
    machine.wait()?;
    machine
        .ssh_target()
        .succeed("systemctl enable --quiet --now kubelet.service kube-proxy.service", Duration::from_secs(30))
        .with_context(|| format!("failed to start the node {}", machine.name()))?;
    Ok(())
}

/// The machine.
pub(super) fn find(metadata: &Metadata) -> Result<Machine> {
    machines::find(&metadata.place, NODES[1].0)
}

/// The node with its paths in the machine.
pub(super) fn describe() -> Node {
    let programs = Path::new(PROGRAMS);
    let etc = PathBuf::from(ETC);
    Node {
        name: NODES[1].0.to_owned(),
        address: NODES[1].1,
        number: 2,
        containerd_bin: programs.join("containerd"),
        runc: programs.join("runc/runc"),
        cni_bin: programs.join("cni-plugins"),
        ca: etc.join("ca.crt"),
        kubelet_kubeconfig: etc.join("kubelet.conf"),
        proxy_kubeconfig: etc.join("kube-proxy.conf"),
        etc,
        containerd_root: "/var/lib/containerd".into(),
        containerd_state: "/run/containerd".into(),
        kubelet_root: "/var/lib/kubelet".into(),
        pod_logs: "/var/log/pods".into(),
        cni_state: "/var/lib/cni/networks".into(),
        cgroup_root: "/".into(),
    }
}

fn write_files(metadata: &Metadata, machine: &Machine) -> Result<()> {
    let node = describe();
    let root = machine.root();
    let inside = |path: &Path| root.join(path.strip_prefix("/").unwrap_or(path));
    let copy = |from: PathBuf, to: &Path| -> Result<()> {
        let text = fs::read(&from).with_context(|| format!("failed to read {}", from.display()))?;
        write_private(&inside(to), text)
    };
    copy(metadata.pki.file("ca.crt"), &node.ca)?;
    copy(metadata.pki.kubeconfig(&node.name), &node.kubelet_kubeconfig)?;
    copy(metadata.pki.kubeconfig("kube-proxy"), &node.proxy_kubeconfig)?;
    write(&inside(&node.etc.join("containerd.toml")), node.containerd())?;
    write(&inside(&node.etc.join("cni/10-lab.conflist")), node.cni())?;
    write(&inside(&node.etc.join("kubelet.yaml")), node.kubelet())?;
    write(&inside(&node.etc.join("kube-proxy.yaml")), node.proxy())?;
    let units = root.join("etc/systemd/system");
    for (name, text) in units_of(&node) {
        write(&units.join(name), text)?;
    }
    let wants = units.join("multi-user.target.wants");
    fs::create_dir_all(&wants).with_context(|| format!("failed to create {}", wants.display()))?;
    let link = wants.join("containerd.service");
    if link.symlink_metadata().is_err() {
        std::os::unix::fs::symlink("../containerd.service", &link).context("failed to enable containerd")?;
    }
    Ok(())
}

/// The machine's units. containerd starts with it; the others are enabled once the API is there.
fn units_of(node: &Node) -> [(&'static str, String); 3] {
    let etc = node.etc.display();
    // Pods leave under the node's address: the machines need no route back to them.
    let masquerade = format!("POSTROUTING -s {POD_NETWORK} ! -d {POD_NETWORK} -j MASQUERADE");
    [
        (
            "containerd.service",
            unit(
                "containerd",
                &[
                    format!("Environment=PATH={}:/usr/sbin:/usr/bin", node.containerd_bin.display()),
                    "ExecStartPre=/usr/sbin/sysctl -q -w net.ipv4.ip_forward=1".to_owned(),
                    format!(
                        "ExecStartPre=/bin/sh -c 'iptables -w -t nat -C {masquerade} 2>/dev/null || iptables -w -t nat -A {masquerade}'"
                    ),
                    format!("ExecStart={}/containerd --config {etc}/containerd.toml", node.containerd_bin.display()),
                    "Delegate=yes".to_owned(),
                    "KillMode=process".to_owned(),
                    "LimitNOFILE=1048576".to_owned(),
                ],
            ),
        ),
        (
            "kubelet.service",
            unit(
                "kubelet",
                &[
                    format!("ExecStart={PROGRAMS}/kubernetes/kubelet {}", node.kubelet_arguments().join(" ")),
                    "KillMode=process".to_owned(),
                ],
            ),
        ),
        (
            "kube-proxy.service",
            unit(
                "kube-proxy",
                &[format!("ExecStart={PROGRAMS}/kubernetes/kube-proxy {}", node.proxy_arguments().join(" "))],
            ),
        ),
    ]
}

fn unit(name: &str, service: &[String]) -> String {
    format!(
        "[Unit]\nDescription={name} of the metadata cluster\nAfter=network.target containerd.service\n\n[Service]\n{}\nRestart=always\nRestartSec=1\n\n[Install]\nWantedBy=multi-user.target\n",
        service.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_the_ones_of_the_host_and_pods_leave_under_the_nodes_address() {
        let [(_, containerd), (_, kubelet), _] = units_of(&describe());
        assert!(containerd.contains("ExecStart=/opt/lab/containerd/containerd --config /etc/lab/containerd.toml"));
        assert!(containerd.contains("-s 10.200.0.0/16 ! -d 10.200.0.0/16 -j MASQUERADE"));
        assert!(kubelet.contains("ExecStart=/opt/lab/kubernetes/kubelet --config=/etc/lab/kubelet.yaml"));
        assert!(kubelet.contains("--hostname-override=meta-2"));
    }
}
