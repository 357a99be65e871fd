# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What an earlier cluster leaves on a machine. Read-only: the same list says what reset must remove and what a spare machine must not have."""

from __future__ import annotations

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import membership
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt, find
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

# Ours and kubeadm's. They may be mount points, so a directory that is there but empty is clean.
STATE_DIRECTORIES = (
    "/etc/kubernetes",
    "/var/lib/kubelet",
    "/var/lib/etcd",
    "/etc/etcd",
    "/etc/cni/net.d",
    "/var/lib/cni",
    "/var/log/pods",
    "/var/log/containers",
    "/run/kubernetes",
    "/var/cache/clusterwright",
)
RUNTIME_DIRECTORIES = ("/var/lib/containerd", "/run/containerd", "/etc/containerd", "/opt/cni/bin")
UNITS = (
    "kubelet.service",
    "etcd.service",
    "containerd.service",
    "clusterwright-watch.service",
    "clusterwright-network.service",
    "clusterwright-keepalived.service",
    "clusterwright-haproxy.service",
)
UNIT_DIRECTORY = "/etc/systemd/system"
FILES = (
    membership.CLUSTER,
    membership.ARTIFACTS,
    membership.KUBEADM,
    membership.ETCD,
    membership.LOAD_BALANCER,
    membership.NETWORK,
    "/etc/sysctl.d/90-clusterwright.conf",
    "/etc/modules-load.d/clusterwright.conf",
    "/etc/systemd/networkd.conf.d/90-clusterwright.conf",
    "/usr/local/sbin/clusterwright-network",
    "/usr/local/sbin/clusterwright-check-endpoint",
)
INTERFACES = ("cni0", "flannel.1", "flannel-v6.1", "kube-ipvs0", "nodelocaldns", "vxlan.calico", "cilium_host", "cilium_net")
PROCESSES = (
    "kubelet",
    "kube-apiserver",
    "kube-controller",
    "kube-scheduler",
    "kube-proxy",
    "etcd",
    "containerd-shim",
)
NFT_TABLES = (("ip", "kube-proxy"), ("ip6", "kube-proxy"), ("ip", "clusterwright"))
# Routes of ours carry a protocol number of their own, so that they are found again.
ROUTE_PROTOCOL = "77"
HOSTS_BEGIN = "# clusterwright: begin"
HOSTS_END = "# clusterwright: end"
MOUNT_PREFIXES = ("/var/lib/kubelet/", "/run/containerd/", "/var/lib/containerd/", "/run/netns/cni-")


def own_runtime() -> bool:
    """Whether a container runtime here is ours, and not one that the distribution or an administrator installed."""
    return not os.path.exists("/usr/bin/containerd")


def filled(directory: str) -> bool:
    """Whether anything is in the directory."""
    try:
        with os.scandir(directory) as entries:
            return any(entry.name != "lost+found" for entry in entries)
    except OSError:
        return False


def directories() -> list:
    wanted = STATE_DIRECTORIES + (RUNTIME_DIRECTORIES if own_runtime() else ())
    return [directory for directory in wanted if filled(directory)]


def units() -> list:
    known = [unit for unit in UNITS if unit != "containerd.service" or own_runtime()]
    return [unit for unit in known if os.path.lexists(f"{UNIT_DIRECTORY}/{unit}")]


def processes() -> dict:
    """Pids by the name of programs that only a cluster runs."""
    found: dict = {}
    programs = PROCESSES if own_runtime() else tuple(name for name in PROCESSES if name != "containerd-shim")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        name = text(f"/proc/{pid}/comm")
        for wanted in programs:
            # The kernel cuts names at 15 characters.
            if name and name == wanted[:15]:
                found.setdefault(wanted, []).append(int(pid))
    return found


def interfaces() -> list:
    names = os.listdir("/sys/class/net")
    return [name for name in names if name in INTERFACES or name.startswith(("cali", "lxc_"))]


def mounts() -> list:
    """Mounts below our directories, innermost first."""
    points = [line.split()[1] for line in text("/proc/self/mounts").splitlines() if len(line.split()) > 1]
    return sorted((point for point in points if point.startswith(MOUNT_PREFIXES)), key=len, reverse=True)


def nft_tables() -> list:
    """(family, name) of tables of kube-proxy's and ours."""
    if not find("nft"):
        return []
    lines = attempt("nft", "list", "tables").out.splitlines()
    return [(family, name) for family, name in NFT_TABLES if f"table {family} {name}" in lines]


def iptables_chains() -> list:
    """(command, table, chain) of kube-proxy's and the kubelet's chains."""
    found = []
    for command in ("iptables", "ip6tables"):
        if not find(f"{command}-save"):
            continue
        table = ""
        for line in attempt(f"{command}-save").out.splitlines():
            if line.startswith("*"):
                table = line[1:].strip()
            elif line.startswith((":KUBE-", ":CNI-")):
                found.append((command, table, line[1:].split()[0]))
    return found


def routes() -> list:
    """Routes that the network step added."""
    if not find("ip"):
        return []
    return [line.split()[0] for line in attempt("ip", "-4", "route", "show", "proto", ROUTE_PROTOCOL).out.splitlines() if line]


def virtual_addresses() -> list:
    """(address, interface) of the endpoint, where keepalived did not take it off."""
    record = membership.read(membership.LOAD_BALANCER)
    address, interface = str(record.get("virtual_ip", "")), str(record.get("interface", ""))
    if not address or not find("ip"):
        return []
    lines = attempt("ip", "-oneline", "address", "show").out.splitlines()
    there = any(line.split()[3].partition("/")[0] == address for line in lines if len(line.split()) > 3)
    return [(address, interface)] if there else []


def pod_namespaces() -> list:
    try:
        return [name for name in os.listdir("/run/netns") if name.startswith("cni-")]
    except OSError:
        return []


def find_all() -> list:
    """Every leftover, as sentences' parts: what it is and its name."""
    found = [f"directory {path}" for path in directories()]
    found += [f"file {path}" for path in FILES if os.path.lexists(path)]
    found += [f"unit {unit}" for unit in units()]
    found += [f"process {name} ({', '.join(map(str, pids[:4]))})" for name, pids in sorted(processes().items())]
    found += [f"interface {name}" for name in interfaces()]
    found += [f"mount {point}" for point in mounts()[:8]]
    found += [f"nft table {family} {name}" for family, name in nft_tables()]
    chains = iptables_chains()
    if chains:
        found.append(f"iptables chains KUBE-* ({len(chains)})")
    found += [f"route {route}" for route in routes()]
    found += [f"address {address}" for address, _interface in virtual_addresses()]
    found += [f"network namespace {name}" for name in pod_namespaces()[:8]]
    if HOSTS_BEGIN in text("/etc/hosts"):
        found.append("lines in /etc/hosts")
    return found
