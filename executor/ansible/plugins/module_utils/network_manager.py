# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""NetworkManager leaves the interfaces of Pods alone: it would give them addresses of its own, or take those that they have."""

from __future__ import annotations

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, restarts, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

UNIT = "NetworkManager.service"
HOME = "/etc/NetworkManager"
FILE = "/etc/NetworkManager/conf.d/90-clusterwright.conf"
TEXT = """\
# Written by clusterwright: the interfaces of Pods are the network plugin's.
[device-clusterwright]
match-device=interface-name:cni0;interface-name:veth*
managed=0
"""


def leave_interfaces(check: bool = False) -> list:
    """Has NetworkManager leave them alone, now and from its next start on; nothing on a machine without it. What changed."""
    if not os.path.isdir(HOME):
        return []
    written = [FILE] if files.write(FILE, TEXT, 0o644, check) else []
    now = units.state(UNIT)
    # Whether its program was replaced meanwhile does not matter here.
    if now.get("ActiveState") != "active" or not (written or restarts.due(UNIT, {**now, "MainPID": "0"}, [FILE])):
        return written
    if not check:
        reload()
        restarts.remember(UNIT, now, [FILE])
    return [*written, UNIT]


def reload() -> None:
    """Has it read its configuration again: no connection is touched."""
    output = attempt("nmcli", "general", "reload", "conf")
    if not output.ok:
        raise StepFailure("ServiceFailed", f"failed to have NetworkManager read its configuration again: {output.said}")


def forget() -> None:
    """Takes it back, as far as that goes: the machine leaves its cluster."""
    if files.remove(FILE) and units.state(UNIT).get("ActiveState") == "active":
        attempt("nmcli", "general", "reload", "conf")
