# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Whether a service still runs with what was on disk before. A run that is cut short between a write and the restart leaves files that
look right to the next run, so what was written in one call says nothing: the running service is compared with its files.

What a service read is remembered by the ID that systemd gives each start of it. A start that nobody remembered, at boot or by hand, is
compared by its time."""

from __future__ import annotations

import hashlib
import os
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import membership

# On no disk: a boot starts everything anew.
FOLDER = "/run/clusterwright/read"
PROPERTIES = "InvocationID,MainPID,ExecMainStartTimestampMonotonic,StateChangeTimestampMonotonic"


def digest(paths: list) -> str:
    """Of all that the service reads; a program by its file, which is never changed in place."""
    total = hashlib.sha256()
    for path in sorted(paths):
        try:
            status = os.stat(path)
            total.update(f"{path}\0{status.st_size}\0".encode())
            if status.st_mode & 0o111:
                total.update(f"{status.st_ino} {status.st_mtime_ns}".encode())
            else:
                with open(path, "rb") as source:
                    total.update(source.read())
        except OSError:
            total.update(f"{path}\0absent".encode())
    return total.hexdigest()


def newest(paths: list) -> float:
    """When the last of the files came into its place."""
    times = []
    for path in paths:
        try:
            times.append(os.stat(path).st_ctime)
        except OSError:
            continue
    return max(times, default=0.0)


def replaced(pid: str) -> bool:
    """Whether the program of a running process is another one on disk by now."""
    try:
        return os.readlink(f"/proc/{int(pid)}/exe").endswith(" (deleted)")
    except (OSError, ValueError):
        return False


def is_remembered(unit: str) -> bool:
    """Whether it is known what the unit read when it was started last by us."""
    return os.path.exists(f"{FOLDER}/{unit}.json")


def due(unit: str, state: dict, paths: list, since: str = "ExecMainStartTimestampMonotonic") -> bool:
    """Whether the unit, in this state, has not read what is in the files now. `since`: the moment at which it reads them."""
    if not paths:
        return False
    if state.get("MainPID", "0") != "0" and replaced(state["MainPID"]):
        return True
    known = membership.read(f"{FOLDER}/{unit}.json")
    if known.get("paths") == sorted(paths) and known.get("invocation") == state.get("InvocationID"):
        return known.get("digest") != digest(paths)
    return is_older(state, paths, since)


def is_older(state: dict, paths: list, since: str = "ExecMainStartTimestampMonotonic") -> bool:
    """Whether a unit in this state began before one of the files came into its place."""
    moment = state.get(since, "0")
    if not moment.isdigit() or moment == "0":
        return False
    return newest(paths) > time.time() - (time.monotonic() - int(moment) / 1_000_000)


def remember(unit: str, state: dict, paths: list) -> None:
    """Notes that the unit, in this state, has read the files as they are now."""
    if paths and state.get("InvocationID"):
        os.makedirs(FOLDER, mode=0o700, exist_ok=True)
        value = {"invocation": state["InvocationID"], "paths": sorted(paths), "digest": digest(paths)}
        membership.save(f"{FOLDER}/{unit}.json", value)
