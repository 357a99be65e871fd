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
  - Keeps /var/lib/clusterwright, where the guard keeps its state, but for snapshots that a backup has spooled there.
options:
  login_keys:
    description: Keys with which the run may have logged in; none of them is taken out of what lets the user in.
    type: list
    elements: str
    default: []
author:
  - Clusterwright developers
"""

import base64
import os
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    accounts,
    bpf,
    files,
    host_file,
    karmada,
    kernel_settings,
    leftovers,
    links,
    machine_settings,
    membership,
    mounts,
    network_manager,
    packet_filter,
    pod_network,
    processes,
    removal,
    roots,
    routing,
    runtime,
    selinux,
    trusted_authorities,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


# Made by the steps, or by kubectl on the machine; of no importance if they stay.
OTHER_DIRECTORIES = ("/run/clusterwright", "/root/.kube/cache", "/var/lib/clusterwright/spool", "/var/log/kubernetes/audit")
CNI_DIRECTORIES = ("/opt/cni", "/etc/cni")


def stop_services() -> None:
    """The kubelet first, or it starts its Pods again. Not by `kubeadm reset`: it stops containers one after the other, waits for an
    etcd that is not its own, and needs a runtime that answers, while here all of it goes."""
    present = leftovers.units()
    if "kubelet.service" in present:
        attempt("systemctl", "stop", "kubelet.service", timeout=60)
    kill_processes(processes.CONTAINERS)
    # An API server whose etcd is gone, here or on other machines, waits for it when it is asked to end.
    for unit in karmada.units():
        attempt("systemctl", "kill", "--signal=KILL", unit, timeout=60)
    if present:
        attempt("systemctl", "disable", "--now", *present, timeout=120)


def kill_processes(only: tuple = ()) -> None:
    """Ends the processes of these names, or of all of a cluster, containers' with their shims, until none is left."""
    for _round in range(50):
        left = {name: pids for name, pids in processes.find().items() if not only or name in only}
        if not left:
            return
        for shim in left.get(processes.SHIM, []):
            for pid in processes.descendants(shim):
                processes.kill(pid)
        for pids in left.values():
            for pid in pids:
                processes.kill(pid)
        time.sleep(0.05)


def unmount() -> None:
    """Takes volumes off the machine before anything is deleted: what cannot be unmounted keeps all that is around it."""
    for mount in leftovers.mounted():
        mounts.unmount(mount)
    for device, _file in leftovers.loops():
        attempt("losetup", "--detach", device)
    for name in leftovers.pod_namespaces():
        attempt("ip", "netns", "delete", name)


def remove_network() -> None:
    bpf.remove()
    links.remove()
    for address, interface in leftovers.virtual_addresses():
        attempt("ip", "address", "delete", f"{address}/32", "dev", interface)
    routing.remove()
    packet_filter.remove()
    for setting in proxied():
        try:
            with open(setting, "w", encoding="ascii") as target:
                target.write("0\n")
        except OSError:
            continue


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
            removal.remove(path)
    own_runtime = runtime.own()
    if runtime.ours(runtime.CONFIGURATION):
        files.remove(runtime.CONFIGURATION)
    for unit in leftovers.units():
        files.remove(f"{leftovers.UNIT_DIRECTORY}/{unit}")
    for root in map(roots.Root, roots.state() + (roots.RUNTIME if own_runtime else ())):
        if root.ours:
            # A link that an administrator made keeps what it leads to.
            removal.empty(root.real, keep=root.real != root.path)
    for path in leftovers.FILES + OTHER_DIRECTORIES + (CNI_DIRECTORIES if own_runtime else ()):
        removal.remove(path)
    try:
        os.rmdir(os.path.dirname(karmada.PROGRAMS))
    except OSError:
        # It is not there, or has something of others.
        pass
    accounts.remove(karmada.USER)
    host_file.set_lines([])
    units.reload()
    attempt("systemctl", "reset-failed")


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
        kernel_settings.set_back()
        trusted_authorities.forget()
        network_manager.forget()
        selinux.forget()
        machine_settings.forget(call.params.get("login_keys") or [])
        remove_files()
    left = leftovers.find_all(memory=False)
    if not left:
        # Last: as long as anything is left, the next attempt needs to know whose it is.
        removal.remove(membership.HOME)
        left = leftovers.find_all()
    report = {"kind": "clean", "clean": not left, "leftovers": left}
    if left:
        raise StepFailure("NotClean", f"left on the machine after the reset: {', '.join(left)}", clusterwright=report)
    return {"changed": bool(before), "clusterwright": report, "msg": f"removed {len(before)} things" if before else "was clean"}
