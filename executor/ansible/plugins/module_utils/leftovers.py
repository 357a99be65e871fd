# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What an earlier cluster leaves on a machine. Read-only: the same list says what reset must remove and what a spare machine must not have."""

from __future__ import annotations

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    accounts,
    bpf,
    journal_limits,
    karmada,
    links,
    marked_lines,
    membership,
    mounts,
    name_servers,
    network_manager,
    packet_filter,
    processes,
    proxies,
    roots,
    routing,
    runtime,
    time_servers,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt, find
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import container, text

# For the modules that make such routes.
ROUTE_PROTOCOL = routing.ROUTE_PROTOCOL
UNITS = (
    "kubelet.service",
    "etcd.service",
    "containerd.service",
    "clusterwright-network-probe.service",
    "clusterwright-watch.service",
    "clusterwright-network.service",
    "clusterwright-keepalived.service",
    "clusterwright-haproxy.service",
    # Beside these, karmada.units().
)
UNIT_DIRECTORY = "/etc/systemd/system"
# What tells whose the machine is, and so what a reset may remove: the last that goes.
MEMORY = (membership.CLUSTER, membership.ROOTS, membership.KARMADA)
FILES = (
    membership.ARTIFACTS,
    membership.KUBEADM,
    membership.ETCD,
    membership.LOAD_BALANCER,
    membership.NETWORK,
    membership.NETWORK_PROBE,
    "/etc/sysctl.d/90-clusterwright.conf",
    "/etc/modules-load.d/clusterwright.conf",
    "/etc/systemd/networkd.conf.d/90-clusterwright.conf",
    network_manager.FILE,
    *time_servers.FILES,
    name_servers.RESOLVED_FILE,
    journal_limits.FILE,
    proxies.APT,
    "/usr/local/sbin/clusterwright-network",
    "/usr/local/sbin/clusterwright-network-probe",
    "/usr/local/sbin/clusterwright-check-endpoint",
    # Cilium's.
    "/etc/sysctl.d/99-zzz-override_cilium.conf",
)
# Of a runtime that has other users, only what is Kubernetes'.
SHARED_RUNTIME = ("/run/containerd/io.containerd.runtime.v2.task/k8s.io", "/run/containerd/io.containerd.grpc.v1.cri")
NAMESPACES = "/run/netns/cni-"


def directories() -> list:
    """The roots with anything in them."""
    wanted = roots.state() + (roots.RUNTIME if runtime.own() else ())
    return [root for root in map(roots.Root, wanted) if root.filled()]


def units() -> list:
    """Units that a cluster put here; a runtime's only when we wrote it."""
    known = [unit for unit in UNITS if unit != runtime.UNIT or runtime.ours(runtime.UNIT_FILE)]
    return [unit for unit in known if os.path.lexists(f"{UNIT_DIRECTORY}/{unit}")] + karmada.units()


def mounted() -> list:
    """Mounts below our directories, in the order in which they can be unmounted."""
    shared = () if runtime.own() else SHARED_RUNTIME
    wanted = [root.real for root in map(roots.Root, roots.state() + (() if shared else roots.RUNTIME)) if root.ours]
    found = {mount: None for place in [*wanted, *shared] for mount in mounts.below(place)}
    return [*found, *(mount for mount in mounts.table() if mount.point.startswith(NAMESPACES))]


def loops() -> list:
    """(device, file) of block devices made of files in our directories, which block volumes are. None in a container: it sees those of
    its host and of others there, whose files have the same paths."""
    if container():
        return []
    places = tuple(f"{root.real}/" for root in map(roots.Root, roots.state()) if root.ours)
    found = []
    for name in sorted(os.listdir("/sys/block")) if os.path.isdir("/sys/block") else []:
        file = text(f"/sys/block/{name}/loop/backing_file")
        if file.startswith(places):
            found.append((f"/dev/{name}", file))
    return found


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


def find_all(memory: bool = True) -> list:
    """Every leftover, as sentences' parts: what it is and its name. Mounts come first: they are why a directory could not be removed."""
    found = [f"mount {mount.point} ({mount.kind})" for mount in mounted()[:8]]
    found += [root.describe() for root in directories()]
    found += [f"file {path}" for path in (MEMORY if memory else ()) + FILES if os.path.lexists(path)]
    found += [f"unit {unit}" for unit in units()]
    found += [f"process {name} ({', '.join(map(str, pids[:4]))})" for name, pids in sorted(processes.find().items())]
    found += [f"loop device {device} ({file})" for device, file in loops()[:8]]
    found += links.find() + routing.find() + packet_filter.find() + bpf.find()
    found += [f"address {address}" for address, _interface in virtual_addresses()]
    found += [f"network namespace {name}" for name in pod_namespaces()[:8]]
    if accounts.made(karmada.USER):
        found.append(f"user {karmada.USER}")
    if marked_lines.BEGIN in text("/etc/hosts"):
        found.append("lines in /etc/hosts")
    return found
