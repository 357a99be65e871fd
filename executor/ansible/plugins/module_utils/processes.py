# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The cluster's processes on this machine: the programs that only a cluster runs, and what runs in Kubernetes' containers."""

from __future__ import annotations

import os
import signal
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import leftovers

SHIM = "containerd-shim"
# The kernel cuts names at 15 characters.
LENGTH = 15


def all_pids() -> list:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def arguments(pid: int) -> list:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as source:
            return source.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return []


def shims() -> list:
    """Pids of the shims of Kubernetes' containers; those of other users of the same containerd are not ours."""
    found = []
    for pid in all_pids():
        if leftovers.text(f"/proc/{pid}/comm").startswith(SHIM[:LENGTH]):
            words = arguments(pid)
            if any(pair == ("-namespace", "k8s.io") for pair in zip(words, words[1:])):
                found.append(pid)
    return found


def programs() -> dict:
    """Pids by name of the cluster's own programs, in containers or not."""
    found = {name: [pid for pid in pids if parent(pid)] for name, pids in leftovers.processes().items() if name != SHIM}
    return {name: pids for name, pids in found.items() if pids}


def parent(pid: int) -> int:
    """The process that started this one; 0 for one that has ended, also where nobody has collected it yet."""
    # The name, in brackets, may hold anything; the state and the parent follow it.
    fields = leftovers.text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[1]) if len(fields) > 1 and fields[0] not in "ZX" else 0


def below(parents: list) -> list:
    """Pids below these."""
    children: dict = {}
    for pid in all_pids():
        children.setdefault(parent(pid), []).append(pid)
    found, queue = [], list(parents)
    while queue:
        for child in children.get(queue.pop(), []):
            found.append(child)
            queue.append(child)
    return found


def end_containers(grace: float = 10) -> None:
    """Asks everything in Kubernetes' containers to end, and kills what has not after `grace` seconds. No container is deleted. The kubelet
    must be stopped before, or it starts them again."""
    deadline = time.monotonic() + grace
    asked: set = set()
    while True:
        parents = shims()
        left = set(below(parents)).union(*programs().values())
        kills = time.monotonic() > deadline
        if not left or kills:
            for pid in [*left, *parents]:
                send(pid, signal.SIGKILL)
        if not left or time.monotonic() > deadline + grace:
            return
        for pid in () if kills else left - asked:
            send(pid, signal.SIGTERM)
        asked |= left
        time.sleep(0.1)


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
