#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Takes a machine out of its cluster and makes it clean."""

from __future__ import annotations

DOCUMENTATION = r"""
module: reset
short_description: Undoes what the other steps did on this machine, and tells what is left
description:
  - Works on what it finds, so it may be repeated, and works on a machine that was only half installed.
  - Keeps /var/lib/clusterwright, where the guard keeps its state.
author:
  - Clusterwright developers
"""

import base64
import os
import signal
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, host_file, leftovers, membership, pod_network, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


# Made by the steps, or by kubectl on the machine; of no importance if they stay.
OTHER_DIRECTORIES = ("/opt/cni", "/etc/cni", "/run/clusterwright", "/root/.kube/cache")
SHIM = "containerd-shim"
# What runs in containers; etcd and the kubelet are services of their own.
CONTAINERS = (SHIM, "kube-apiserver", "kube-controller", "kube-scheduler", "kube-proxy")


def stop_services() -> None:
    """The kubelet first, or it starts its Pods again. Not by `kubeadm reset`: it stops containers one after the other, waits for an
    etcd that is not its own, and needs a runtime that answers, while here all of it goes."""
    present = [unit for unit in leftovers.UNITS if unit in leftovers.units()]
    if "kubelet.service" in present:
        attempt("systemctl", "stop", "kubelet.service", timeout=60)
    kill_processes(CONTAINERS)
    if present:
        attempt("systemctl", "disable", "--now", *present, timeout=120)


def kill_processes(only: tuple = leftovers.PROCESSES) -> None:
    """Ends the processes of these names, containers' with their shims, until none is left."""
    for _round in range(50):
        left = {name: pids for name, pids in leftovers.processes().items() if name in only}
        if not left:
            return
        for shim in left.get(SHIM, []):
            for pid in descendants(shim):
                kill(pid)
        for pids in left.values():
            for pid in pids:
                kill(pid)
        time.sleep(0.05)


def descendants(parent: int) -> list:
    """Pids below the process, from /proc."""
    children: dict = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as source:
                children.setdefault(int(source.read().rpartition(")")[2].split()[1]), []).append(int(pid))
        except (OSError, ValueError):
            continue
    found, queue = [], [parent]
    while queue:
        for child in children.get(queue.pop(), []):
            found.append(child)
            queue.append(child)
    return found


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def unmount() -> None:
    for point in leftovers.mounts():
        attempt("umount", "--lazy", point)
    for name in leftovers.pod_namespaces():
        attempt("ip", "netns", "delete", name)


def remove_network() -> None:
    for interface in leftovers.interfaces():
        attempt("ip", "link", "delete", interface)
    for address, interface in leftovers.virtual_addresses():
        attempt("ip", "address", "delete", f"{address}/32", "dev", interface)
    for route in leftovers.routes():
        attempt("ip", "route", "delete", route, "proto", leftovers.ROUTE_PROTOCOL)
    for family, name in leftovers.nft_tables():
        attempt("nft", "delete", "table", family, name)
    remove_chains(leftovers.iptables_chains())
    for setting in proxied():
        try:
            with open(setting, "w", encoding="ascii") as target:
                target.write("0\n")
        except OSError:
            continue


def remove_chains(chains: list) -> None:
    """Removes chains and the rules that jump to them: in one restore for each table, so no rule refers to nothing."""
    for command in {command for command, _table, _chain in chains}:
        text, table, ours = [], "", set()
        for line in attempt(f"{command}-save").out.splitlines():
            if line.startswith("*"):
                table = line[1:].strip()
                ours = {chain for known, where, chain in chains if known == command and where == table}
                text.append(line)
            elif line.startswith(":"):
                if line[1:].split()[0] not in ours:
                    text.append(line)
            elif line.startswith("-A"):
                if not ours.intersection(line.split()):
                    text.append(line)
            elif line == "COMMIT":
                text.append(line)
        attempt(f"{command}-restore", stdin="\n".join(text) + "\n")


def proxied() -> list:
    """Interfaces for which the network step turned ARP proxying on, by the script that it wrote."""
    try:
        with open("/usr/local/sbin/clusterwright-network", encoding="utf-8") as source:
            words = source.read().split()
    except OSError:
        return []
    names = [word.partition("=")[0] for word in words if ".proxy_arp=" in word]
    # sysctl writes the dot of an interface like eth0.10 as a slash.
    return ["/proc/sys/" + name.translate(str.maketrans("./", "/.")) for name in names]


def forget_kubeconfig() -> None:
    """Removes root's kubeconfig when it is of this cluster; one of another cluster is not ours to remove."""
    path = "/root/.kube/config"
    try:
        with open("/etc/kubernetes/pki/ca.crt", "rb") as certificate, open(path, encoding="ascii", errors="replace") as config:
            ours = base64.b64encode(certificate.read()).decode("ascii") in config.read()
    except OSError:
        return
    if ours:
        files.remove(path)


def remove_files() -> None:
    forget_kubeconfig()
    for record in membership.read(membership.ARTIFACTS).values():
        for path in record.get("files", {}):
            files.remove(path)
    for unit in leftovers.units():
        files.remove(f"{leftovers.UNIT_DIRECTORY}/{unit}")
    wanted = leftovers.STATE_DIRECTORIES + (leftovers.RUNTIME_DIRECTORIES if leftovers.own_runtime() else ())
    for directory in wanted:
        empty(directory)
    for path in leftovers.FILES + (*OTHER_DIRECTORIES, membership.HOME):
        files.remove(path)
    host_file.set_lines([])
    units.reload()
    attempt("systemctl", "reset-failed")


def empty(directory: str) -> None:
    """Removes the directory, or at least all in it where it is a mount point."""
    try:
        names = os.listdir(directory)
    except OSError:
        return
    for name in names:
        files.remove(os.path.join(directory, name))
    try:
        os.rmdir(directory)
    except OSError:
        pass


def work(call) -> dict:
    before = leftovers.find_all()
    if call.check_mode:
        return {"changed": bool(before), "msg": f"would remove: {', '.join(before)}"}
    if before:
        pod_network.stop()
        stop_services()
        kill_processes()
        unmount()
        remove_network()
        remove_files()
    left = leftovers.find_all()
    report = {"kind": "clean", "clean": not left, "leftovers": left}
    if left:
        raise StepFailure("NotClean", f"left on the machine after the reset: {', '.join(left)}", clusterwright=report)
    return {"changed": bool(before), "clusterwright": report, "msg": f"removed {len(before)} things" if before else "was clean"}
