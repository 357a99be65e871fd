# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Whose container runtime is on a machine: ours, or one that a distribution or an administrator put there, which is not ours to touch."""

from __future__ import annotations

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import distribution_packages, membership
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

# The first line of every file that we write.
MARK = "# Written by clusterwright"
UNIT = "containerd.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
CONFIGURATION = "/etc/containerd/config.toml"
UNIT_FOLDERS = ("/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
UNITS = (UNIT, "docker.service", "docker.socket", "snap.docker.dockerd.service", "crio.service", "cri-docker.service")
PROGRAMS = ("/usr/bin/containerd", "/usr/bin/dockerd", "/usr/sbin/dockerd", "/usr/bin/crio", "/snap/bin/dockerd")
# The names of processes, as the kernel has them.
DAEMONS = ("containerd", "dockerd", "crio", "cri-dockerd")


def ours(path: str) -> bool:
    """Whether we wrote the file."""
    return text(path).startswith(MARK)


def installed_by_us() -> set:
    """Programs of the bundle that were put here."""
    return {path for record in membership.read(membership.ARTIFACTS).values() for path in record.get("files", {})}


def daemons() -> dict:
    """Program by pid of the runtimes that are at work."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if text(f"/proc/{pid}/comm") in DAEMONS:
            try:
                found[int(pid)] = os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
            except OSError:
                continue
    return found


def foreign() -> list:
    """What shows a runtime that is not ours, each by its path; empty when there is none."""
    found = [path for path in PROGRAMS if os.path.exists(path)]
    seen = set()
    for unit in UNITS:
        for folder in UNIT_FOLDERS:
            path = f"{folder}/{unit}"
            # One file may have two paths, where /lib is a link.
            if os.path.lexists(path) and not ours(path) and os.path.realpath(path) not in seen:
                seen.add(os.path.realpath(path))
                found.append(path)
    if os.path.exists(CONFIGURATION) and not ours(CONFIGURATION):
        found.append(CONFIGURATION)
    known = installed_by_us()
    unit = text(UNIT_FILE) if ours(UNIT_FILE) else ""
    for pid, program in sorted(daemons().items()):
        if program not in known and program not in found and f"ExecStart={program}\n" not in f"{unit}\n":
            found.append(f"{program} (process {pid})")
    return found


def own() -> bool:
    """Whether the runtime's directories, units and containers here can only be ours."""
    return not foreign()


def taken_over() -> bool:
    """Whether containerd is ours although another runtime is here: a node that was made so must go on."""
    return ours(UNIT_FILE)


def what_to_do(found: list) -> str:
    """The way out, for what `foreign` found."""
    remove = distribution_packages.hints().REMOVE
    return (
        f"a container runtime that is not ours is on the machine: {', '.join(found)}. Clusterwright installs containerd itself and takes over"
        f" no other. Remove it with its units and configuration, after saving what it holds ({remove} docker.io docker-ce"
        " containerd containerd.io cri-o, those of them that are here), or choose another machine"
    )
