# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The servers by which this machine keeps its clock: those of the program that keeps it here, which is the distribution's."""

from __future__ import annotations

import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import drop_in, machine, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

TIMESYNCD = "systemd-timesyncd.service"
TIMESYNCD_FILE = "/etc/systemd/timesyncd.conf.d/90-clusterwright.conf"
CHRONY = "chrony.service"
CHRONY_FOLDER = "/etc/chrony/sources.d"
CHRONY_FILE = f"{CHRONY_FOLDER}/clusterwright.sources"
CHRONY_CONFIGURATION = "/etc/chrony/chrony.conf"
FILES = (TIMESYNCD_FILE, CHRONY_FILE)


def service() -> str:
    """The unit of the program that keeps the clock."""
    for unit in (CHRONY, TIMESYNCD):
        if units.exists(unit) and units.state(unit).get("ActiveState") == "active":
            if unit == CHRONY and not reads_folder():
                raise StepFailure(
                    "TimeServiceMissing",
                    f"configuration.machine.timeServers: chrony reads no file of {CHRONY_FOLDER}: add the line `sourcedir {CHRONY_FOLDER}`"
                    f" to {CHRONY_CONFIGURATION}, then systemctl restart chrony",
                )
            return unit
    if machine.container() and units.exists(TIMESYNCD):
        # It does not run here, since the clock is the host's.
        return TIMESYNCD
    raise StepFailure(
        "TimeServiceMissing",
        "configuration.machine.timeServers needs systemd-timesyncd or chrony, and neither runs on the machine: apt-get install"
        " systemd-timesyncd, then timedatectl set-ntp true; or take timeServers back",
    )


def reads_folder() -> bool:
    pattern = rf"^\s*sourcedir\s+{CHRONY_FOLDER}/?\s*$"
    return bool(re.search(pattern, machine.text(CHRONY_CONFIGURATION), re.MULTILINE | re.IGNORECASE))


def apply(servers: list, check: bool) -> list:
    """Has the clock kept by these servers; by none of ours without any. What changed."""
    # An empty value first takes back those that other files name.
    texts = {
        TIMESYNCD: (TIMESYNCD_FILE, f"[Time]\nNTP=\nNTP={' '.join(servers)}\n"),
        CHRONY: (CHRONY_FILE, "".join(f"server {server} iburst\n" for server in servers)),
    }
    chosen = service() if servers else ""
    changed = []
    for unit, (path, text) in texts.items():
        changed += drop_in.ensure(path, text if unit == chosen else "", unit, check)
    return changed
