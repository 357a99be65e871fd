# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""systemd-networkd reads its configuration only when it starts: one that runs since before a file was written does not know it."""

from __future__ import annotations

import os
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

UNIT = "systemd-networkd.service"
FILE = "/etc/systemd/networkd.conf.d/90-clusterwright.conf"
TEXT = """\
# Written by clusterwright: a restart of systemd-networkd must not drop the route to the Pods.
[Network]
ManageForeignRoutes=no
"""
# The kernel counts a process's start in ticks of 10 ms: one that was started right after the file was written has read it.
TICK = 0.02


def started(pid: int) -> float:
    """When the process started, on the clock that files are dated by."""
    # The name, in brackets, may hold anything; the start is the 20th field after it.
    ticks = int(text(f"/proc/{pid}/stat").rpartition(")")[2].split()[19])
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age


def running() -> int:
    """The pid of the networkd that runs, or 0."""
    output = attempt("systemctl", "show", UNIT, "--property=MainPID", "--value")
    return int(output.out) if output.ok and output.out.strip().isdigit() else 0


def leave_routes(check: bool = False) -> list:
    """Lets networkd leave alone what it did not make, now and from its next start on. What changed."""
    written = [FILE] if files.write(FILE, TEXT, 0o644, check) else []
    return written + restart_if_older(FILE, check)


def restart_if_older(path: str, check: bool = False) -> list:
    """Restarts a networkd that runs since before the file was written, also by an earlier call that was cut short after that.
    The units that it restarted, or would."""
    try:
        written = os.stat(path).st_mtime
        pid = running()
        older = pid > 0 and started(pid) + TICK < written
    except (OSError, ValueError, IndexError):
        # Nothing was written, or the process has ended in between: the next one reads the file.
        return []
    if not older:
        return []
    if not check:
        if written > time.time():
            # Written under a clock that went ahead: it would be newer than every networkd.
            os.utime(path)
        units.systemctl("restart", UNIT, what=f"restart {UNIT}")
    return [UNIT]
