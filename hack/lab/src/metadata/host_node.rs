//! The metadata cluster's node on the host. All that it has lies in the lab's directory, beside anything else that runs
//! here.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::node::{Node, POD_BRIDGE};
use super::{Metadata, NODES};
use crate::cgroups::Group;
use crate::command::{Invocation, run};
use crate::machines::unmount_below;
use crate::network::POD_NETWORK;
use crate::place::write;
use crate::processes::{self, Daemon};

/// The names of its processes, in the order of their start.
pub(super) const PROCESSES: [&str; 3] = ["containerd", "kubelet", "kube-proxy"];

/// The node with its paths on the host.
pub(super) fn describe(metadata: &Metadata) -> Result<Node> {
    let base = metadata.directory().join("host");
    Ok(Node {
        name: NODES[0].0.to_owned(),
        address: NODES[0].1,
        number: 1,
        containerd_bin: directory_of(metadata.programs.find("containerd")?),
        runc: metadata.programs.find("runc")?,
        cni_bin: directory_of(metadata.programs.find("host-local")?),
        etc: base.join("etc"),
        containerd_root: base.join("containerd"),
        containerd_state: base.join("run"),
        kubelet_root: base.join("kubelet"),
        pod_logs: base.join("pod-logs"),
        cni_state: base.join("cni"),
        ca: metadata.pki.file("ca.crt"),
        kubelet_kubeconfig: metadata.pki.kubeconfig(NODES[0].0),
        proxy_kubeconfig: metadata.pki.kubeconfig("kube-proxy"),
        cgroup_root: pods(metadata).path(),
    })
}

/// Starts containerd; the rest waits for the API.
pub(super) fn start_runtime(metadata: &Metadata) -> Result<()> {
    let node = describe(metadata)?;
    write(&node.etc.join("containerd.toml"), node.containerd())?;
    write(&node.etc.join("cni/10-lab.conflist"), node.cni())?;
    make_pod_bridge(&node)?;
    let path = std::env::var("PATH").unwrap_or_default();
    Daemon::new("containerd", metadata.programs.find("containerd")?)
        .args(["--config".into(), node.etc.join("containerd.toml")])
        .env("PATH", format!("{}:{path}", node.containerd_bin.display()))
        .within(&metadata.daemons())
        .start(&metadata.place)?;
    metadata.wait_for("containerd", "containerd to answer", || ctr(metadata, &node)?.args(["version"]).run())
}

/// Starts the kubelet and kube-proxy.
pub(super) fn start(metadata: &Metadata) -> Result<()> {
    let node = describe(metadata)?;
    pods(metadata).create(None)?;
    write(&node.etc.join("kubelet.yaml"), node.kubelet())?;
    write(&node.etc.join("kube-proxy.yaml"), node.proxy())?;
    for (name, args) in [("kubelet", node.kubelet_arguments()), ("kube-proxy", node.proxy_arguments())] {
        Daemon::new(name, metadata.programs.find(name)?)
            .args(args)
            .within(&metadata.daemons())
            .start(&metadata.place)?;
    }
    Ok(())
}

/// Ends the node and removes what it and its Pods left on the host. Works without the node ever having been whole.
pub(super) fn remove(metadata: &Metadata) -> Result<()> {
    for name in ["kube-proxy", "kubelet", "containerd"] {
        processes::kill_now(&metadata.place, name)?;
    }
    // What containerd started outlives it: the shims are in its group, the containers in the Pods'.
    for group in [metadata.daemons(), pods(metadata)] {
        end_all(&group);
    }
    let base = metadata.directory().join("host");
    unmount_below(&base)?;
    if let Ok(proxy) = metadata.programs.find("kube-proxy")
        && run_quietly(["-w", "-t", "nat", "-S", "KUBE-SERVICES"])?
    {
        Invocation::new(proxy)
            .args(["--cleanup"])
            .within(Duration::from_secs(20))
            .output()
            .context("failed to remove kube-proxy's rules")?;
    }
    remove_kubelet_chains()?;
    if Path::new("/sys/class/net").join(POD_BRIDGE).exists() {
        run("ip", ["link", "delete", POD_BRIDGE]).context("failed to delete the Pods' bridge")?;
    }
    remove_links(Path::new("/var/log/containers"), &base);
    remove_cni_results(Path::new("/var/lib/cni/results"), &base);
    Ok(())
}

/// The client program of the node's containerd.
pub(super) fn ctr(metadata: &Metadata, node: &Node) -> Result<Invocation> {
    Ok(Invocation::new(metadata.programs.find("ctr")?)
        .args(["--address".into(), node.socket()])
        .args(["--namespace", "k8s.io"]))
}

fn pods(metadata: &Metadata) -> Group {
    Group::new(&metadata.place, "metadata-pods")
}

fn directory_of(program: PathBuf) -> PathBuf {
    program.parent().map(Path::to_owned).unwrap_or_default()
}

/// Made here and not by the plugin, for its setting: a Pod that reaches another on the same node over a Service must
/// get the answer through the host's address translation.
fn make_pod_bridge(node: &Node) -> Result<()> {
    let directory = Path::new("/sys/class/net").join(POD_BRIDGE);
    if !directory.exists() {
        run("ip", ["link", "add", POD_BRIDGE, "type", "bridge"]).context("failed to create the Pods' bridge")?;
    }
    let setting = directory.join("bridge/nf_call_iptables");
    if setting.exists() {
        fs::write(&setting, "1").with_context(|| format!("failed to set {}", setting.display()))?;
    }
    run("ip", ["link", "set", POD_BRIDGE, "up"]).context("failed to start the Pods' bridge")?;
    for (other, address) in NODES.iter().filter(|(name, _)| *name != node.name) {
        let number = super::number_of(other);
        let (network, gateway) = (format!("10.200.{number}.0/24"), address.to_string());
        run("ip", ["route", "replace", network.as_str(), "via", gateway.as_str()])
            .with_context(|| format!("failed to add the route to the Pods of {other} in {POD_NETWORK}"))?;
    }
    Ok(())
}

fn end_all(group: &Group) {
    // A process may fork while the list is read: once more finds its child.
    for _ in 0..50 {
        let pids = group.pids();
        if pids.is_empty() {
            return;
        }
        for pid in pids {
            // Gone already is as good.
            kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The kubelet marks its chains and never takes them away.
fn remove_kubelet_chains() -> Result<()> {
    for chain in ["INPUT", "OUTPUT"] {
        while run_quietly(["-w", "-D", chain, "-j", "KUBE-FIREWALL"])? {}
    }
    for (table, chain) in [
        ("filter", "KUBE-FIREWALL"),
        ("filter", "KUBE-KUBELET-CANARY"),
        ("mangle", "KUBE-KUBELET-CANARY"),
        ("mangle", "KUBE-IPTABLES-HINT"),
        ("nat", "KUBE-KUBELET-CANARY"),
    ] {
        if run_quietly(["-w", "-t", table, "-F", chain])? {
            run_quietly(["-w", "-t", table, "-X", chain])?;
        }
    }
    Ok(())
}

fn run_quietly<const N: usize>(args: [&str; N]) -> Result<bool> {
    Ok(Invocation::new("iptables").args(args).output()?.ok())
}

/// The kubelet links each log here, wherever its logs are.
fn remove_links(directory: &Path, into: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if fs::read_link(entry.path()).is_ok_and(|target| target.starts_with(into)) {
            fs::remove_file(entry.path()).ok();
        }
    }
}

/// The results of the network plugins lie in one place for all; ours name a network namespace of ours.
fn remove_cni_results(directory: &Path, base: &Path) {
    let ours = base.display().to_string();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if fs::read_to_string(entry.path()).is_ok_and(|text| text.contains(&ours)) {
            fs::remove_file(entry.path()).ok();
        }
    }
}
