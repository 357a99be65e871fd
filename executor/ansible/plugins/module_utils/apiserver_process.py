# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The process of this machine's API server: what it was started with, and whether it has read what is on disk by now."""

from __future__ import annotations

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import processes, restarts
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

PROGRAM = "kube-apiserver"


def pids() -> list:
    """There are two while one ends and the next begins."""
    return processes.find().get(PROGRAM, [])


def runs_with(argument: str) -> bool:
    """Whether one runs that was started with the argument."""
    return any(argument in text(f"/proc/{pid}/cmdline").split("\0") for pid in pids())


def state(pid: int) -> dict:
    """What tells this start from others, as systemd would say it; empty for one that has ended."""
    # The name, in brackets, may hold anything; the time of the start in ticks since the boot is the 20th field behind it.
    fields = text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if len(fields) < 20:
        return {}
    microseconds = int(fields[19]) * 1_000_000 // os.sysconf("SC_CLK_TCK")
    return {"InvocationID": f"{pid} {fields[19]}", "ExecMainStartTimestampMonotonic": str(microseconds)}


def outdated(reads: list) -> list:
    """The processes that began before the files were what they are."""
    return [pid for pid in pids() if restarts.due(PROGRAM, state(pid), reads)]


def remember(reads: list) -> None:
    """Notes that the one that runs has read the files as they are."""
    running = pids()
    if len(running) == 1:
        restarts.remember(PROGRAM, state(running[0]), reads)
