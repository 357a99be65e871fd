# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What the guard keeps of the Pod network, and the unit by which it does: what flushes routes, addresses, rules or settings is undone
by the machine itself."""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import json
import os
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, membership, selinux, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.leftovers import ROUTE_PROTOCOL

UNIT = "clusterwright-watch.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
BRIDGE = "cni0"
SYSCTL_FILE = "/etc/sysctl.d/90-clusterwright.conf"
# The longest that one repair takes, and some.
LOCK_SECONDS = 30


def guard() -> str:
    """The guard's program. Each command that it starts is told where it is."""
    return os.path.join(os.environ.get("CLUSTERWRIGHT_FENCED_BY") or "/var/lib/clusterwright/guard", "guard")


def unit_text(program: str) -> str:
    # 64: a guard that knows no `watch`; it is not started again and again.
    return f"""\
# Written by clusterwright.
[Unit]
Description=Keeps the Pod network of this node as it was made
After=clusterwright-network.service
ConditionPathExists={membership.NETWORK}

[Service]
ExecStart={program} watch --wanted {membership.NETWORK}
Restart=always
RestartSec=1
RestartPreventExitStatus=64

[Install]
WantedBy=multi-user.target
"""


def wanted(interface: str, pods: str, own: str, script: str, kept: dict) -> dict:
    """What is to be kept, as the guard reads it; `kept` is files with their content."""
    network = ipaddress.ip_network(own)
    # sysctl writes the dot of an interface like eth0.10 as a slash.
    settings = interface.replace(".", "/")
    return {
        "interface": interface,
        "pods": pods,
        "protocol": int(ROUTE_PROTOCOL),
        "bridge": BRIDGE,
        "gateway": f"{network.network_address + 1}/{network.prefixlen}",
        "script": script,
        "sysctlFile": SYSCTL_FILE,
        "sysctl": {
            "net.ipv4.ip_forward": "1",
            f"net.ipv4.conf.{settings}.forwarding": "1",
            f"net.ipv4.conf.{settings}.proxy_arp": "1",
            f"net.ipv4.neigh.{settings}.proxy_delay": "0",
        },
        "files": kept,
    }


def keep(what: dict, check: bool = False) -> list:
    """Lets the guard keep this. What had to be done for it; nothing where no guard is on the machine (a playbook that a person plays)."""
    program = guard()
    if not os.access(program, os.X_OK):
        return []
    changed = []
    text = json.dumps(what, indent=1, sort_keys=True) + "\n"
    for path, content in ((membership.NETWORK, text), (UNIT_FILE, unit_text(program))):
        if files.write(path, content, 0o644, check):
            changed.append(path)
    labelled = selinux.label_program(program, check)
    changed += labelled
    # What is wanted it reads at each look.
    if units.ensure(UNIT, restart=UNIT_FILE in changed or bool(labelled), check=check):
        changed.append(UNIT)
    return changed


def stop() -> None:
    """Ends the keeping for good, before anything is taken away: the unit is stopped and disabled, and should a guard still run, nothing
    is wanted any more."""
    if units.exists(UNIT):
        attempt("systemctl", "disable", "--now", UNIT, timeout=60)
    if os.path.lexists(membership.NETWORK):
        with locked():
            files.remove(membership.NETWORK)


@contextlib.contextmanager
def locked():
    """While nothing is put back: the guard holds this lock when it repairs. One that hangs is not waited for for ever."""
    deadline = time.monotonic() + LOCK_SECONDS
    with open(os.path.splitext(membership.NETWORK)[0] + ".lock", "a", encoding="ascii") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    break
            time.sleep(0.05)
        yield
