# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""systemd units: enabled, started, restarted only for a reason."""

from __future__ import annotations

import os
import socket
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import restarts
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


def state(unit: str) -> dict:
    """ActiveState, UnitFileState, LoadState, NeedDaemonReload and when it was started, of a unit, in one call."""
    output = attempt(
        "systemctl",
        "show",
        unit,
        f"--property=ActiveState,UnitFileState,LoadState,NeedDaemonReload,SubState,{restarts.PROPERTIES}",
    )
    if not output.ok:
        raise StepFailure("SystemdUnavailable", f"failed to ask systemd about {unit}: {output.said}")
    return dict(line.split("=", 1) for line in output.out.splitlines() if "=" in line)


def reload() -> None:
    """Makes systemd read its unit files again."""
    systemctl("daemon-reload", what="read the unit files again")


def systemctl(*arguments: str, what: str, reason: str = "ServiceFailed", timeout: float = 120) -> None:
    """Runs systemctl; a failure carries the end of the unit's journal."""
    output = attempt("systemctl", *arguments, timeout=timeout)
    if not output.ok:
        raise StepFailure(reason, f"failed to {what}: {output.said}{journal(arguments[-1])}")


def journal(unit: str, lines: int = 8) -> str:
    """The last lines a unit logged, for a message."""
    output = attempt("journalctl", "--no-pager", "--quiet", "-o", "cat", "-n", str(lines), "-u", unit)
    return f"\nlast lines of {unit}:\n{output.out.strip()}" if output.ok and output.out.strip() else ""


def ensure(
    unit: str,
    restart: bool = False,
    start: bool = True,
    check: bool = False,
    block: bool = True,
    reads: tuple = (),
    before_restart=lambda: None,
) -> bool:
    """Makes the unit enabled and, unless `start` is false, running; restarts it when asked, or when it runs with other content of the
    files that it `reads` at its start than is in them now. `before_restart` is called before one that runs is stopped, and may
    refuse. True when it acted."""
    now = state(unit)
    if now.get("NeedDaemonReload") == "yes" or now.get("LoadState") == "not-found":
        if not check:
            reload()
            now = state(unit)
    changed = False
    wait = [] if block else ["--no-block"]
    if now.get("UnitFileState") != "enabled":
        changed = True
        if not check:
            systemctl("enable", unit, what=f"enable {unit}")
    if not start:
        return changed
    active = now.get("ActiveState") in ("active", "activating", "reloading")
    again = active and (restart or restarts.due(unit, now, list(reads)))
    if check:
        return changed or not active or again
    if not active:
        attempt("systemctl", "reset-failed", unit)
        systemctl("start", *wait, unit, what=f"start {unit}")
    elif again:
        before_restart()
        systemctl("restart", *wait, unit, what=f"restart {unit}")
    if block:
        # Of a start that nobody waited for it is not known yet which one it will be.
        restarts.remember(unit, state(unit) if not active or again else now, list(reads))
    return changed or not active or again


def ensure_read(unit: str, changed: bool, check: bool, reads: list) -> bool:
    """Starts the unit, or lets it read its configuration again, where it has not read what is there: connections stay. `changed`: of what
    it `reads` something was just written. True when it acted."""
    before = state(unit)
    running = before.get("ActiveState") == "active"
    due = running and (changed or restarts.due(unit, before, reads, since="StateChangeTimestampMonotonic"))
    acted = ensure(unit, check=check)
    if check:
        return acted or changed or due
    if due:
        systemctl("reload", unit, what=f"reload {unit}")
    restarts.remember(unit, state(unit), reads)
    return acted or changed or due


def wait_for_socket(path: str, unit: str, timeout: float = 60) -> None:
    """Returns once something accepts connections on the Unix socket."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(2)
                connection.connect(path)
                return
        except OSError as error:
            if time.monotonic() > deadline:
                raise StepFailure(
                    "ServiceFailed", f"{unit} does not answer on {path} after {timeout:.0f} s: {error}{journal(unit)}"
                ) from error
        time.sleep(0.05)


def exists(unit: str) -> bool:
    """Whether systemd knows a file for the unit."""
    return any(
        os.path.lexists(os.path.join(folder, unit))
        for folder in ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
    )
