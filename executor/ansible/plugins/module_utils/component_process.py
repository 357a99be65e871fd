# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The processes of a control plane's components: when they began, and that they begin anew."""

from __future__ import annotations

import os
import signal
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import apiserver_process, control_plane, processes
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text


def pids(component: str) -> list:
    """This machine's own: a Pod may run another cluster's."""
    return control_plane.own_processes([component]).get(component, [])


def began(pid: int) -> float | None:
    """When the process began, in seconds since the epoch; none for one that has ended."""
    since_boot = apiserver_process.state(pid).get("ExecMainStartTimestampMonotonic")
    return None if since_boot is None else time.time() - (time.monotonic() - int(since_boot) / 1_000_000)


def is_older(component: str, path: str) -> bool:
    """Whether a process of the component began before the file was written."""
    written = os.stat(path).st_mtime
    return any(moment is not None and moment < written for moment in map(began, pids(component)))


def end(component: str) -> None:
    """Asks it to end: the kubelet starts it anew."""
    for pid in pids(component):
        processes.kill(pid, signal.SIGTERM)


def flags(pid: int) -> list:
    """What it was started with."""
    return [word for word in text(f"/proc/{pid}/cmdline").split("\0") if word.startswith("--")]
