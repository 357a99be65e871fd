# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Processes that only a cluster runs: its programs, and whatever runs in its Pods, under whichever container runtime."""

from __future__ import annotations

import os
import signal

from ansible_collections.clusterwright.cluster.plugins.module_utils import karmada, runtime
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

SHIM = "containerd-shim"
POD = "Pod"
# What runs of the programs of a Karmada control plane.
PLANE = "Karmada control plane"
PROGRAMS = ("kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd")
# What runs in containers; etcd and the kubelet are services of their own.
CONTAINERS = (SHIM, POD, "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")


def of_kubernetes(pid: int) -> bool:
    """Whether the shim serves Kubernetes: a runtime may have other users beside it, Docker for one."""
    words = text(f"/proc/{pid}/cmdline").split("\0")
    return "-namespace" in words and words[words.index("-namespace") + 1:][:1] == ["k8s.io"]


def in_pod(pid: int) -> bool:
    """Whether the kubelet put the process into a Pod's cgroup, by either driver."""
    for line in text(f"/proc/{pid}/cgroup").splitlines():
        parts = line.rpartition(":")[2].split("/")
        if any(part in ("kubepods", "kubepods.slice") for part in parts):
            return True
    return False


def of_planes() -> dict:
    """The programs of a Karmada control plane that run, by pid; one that was replaced or removed since counts by its path of before."""
    found = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            program = os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
        except OSError:
            continue
        if program.startswith(f"{karmada.PROGRAMS}/"):
            found[pid] = program
    return found


def name_of(pid: int, own_runtime: bool, pods: bool) -> str:
    """What the process is, or nothing when it is no cluster's."""
    # One that has ended and was not collected yet has no command line left.
    if not text(f"/proc/{pid}/cmdline"):
        return ""
    # The kernel cuts names at 15 characters.
    name = text(f"/proc/{pid}/comm")
    for wanted in PROGRAMS:
        if name == wanted[:15]:
            return wanted
    if name == SHIM[:15] and (own_runtime or of_kubernetes(pid)):
        return SHIM
    return POD if pods and in_pod(pid) else ""


def find() -> dict:
    """Pids by what they are."""
    planes = of_planes()
    found: dict = {PLANE: sorted(planes)} if planes else {}
    own_runtime = runtime.own()
    # A machine that is itself a Pod of another cluster has nothing outside of one.
    pods = not in_pod(os.getpid())
    for pid in set(map(int, filter(str.isdigit, os.listdir("/proc")))) - set(planes):
        name = name_of(pid, own_runtime, pods)
        if name and pid != os.getpid():
            found.setdefault(name, []).append(pid)
    return found


def parent(pid: int) -> int:
    """The process that started this one; 0 for one that has ended, also where nobody has collected it yet."""
    # The name, in brackets, may hold anything; the state and the parent follow it.
    fields = text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[1]) if len(fields) > 1 and fields[0] not in "ZX" else 0


def descendants(*parents: int) -> list:
    """Pids below these processes."""
    children: dict = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        children.setdefault(parent(pid), []).append(pid)
    found, queue = [], list(parents)
    while queue:
        for child in children.get(queue.pop(), []):
            found.append(child)
            queue.append(child)
    return found


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
