# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The servers by which this machine keeps its clock: those of the program that keeps it here, which is the distribution's."""

from __future__ import annotations

import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import distribution_packages, drop_in, machine, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

TIMESYNCD = "systemd-timesyncd.service"
TIMESYNCD_FILE = "/etc/systemd/timesyncd.conf.d/90-clusterwright.conf"
# Debian's and Ubuntu's, and that of the RHEL family.
CHRONY = "chrony.service"
CHRONYD = "chronyd.service"
CHRONY_FOLDER = "/etc/chrony/sources.d"
CHRONY_FILE = f"{CHRONY_FOLDER}/clusterwright.sources"
CHRONY_CONFIGURATIONS = {CHRONY: "/etc/chrony/chrony.conf", CHRONYD: "/etc/chrony.conf"}
FILES = (TIMESYNCD_FILE, CHRONY_FILE)


def chrony() -> str:
    """chrony's unit here. Debian's has the other name as well, for one and the same unit."""
    return CHRONYD if units.exists(CHRONYD) and not units.exists(CHRONY) else CHRONY


def service() -> str:
    """The unit of the program that keeps the clock."""
    for unit in (chrony(), TIMESYNCD):
        if units.exists(unit) and units.state(unit).get("ActiveState") == "active":
            configuration = CHRONY_CONFIGURATIONS.get(unit, "")
            if configuration and not reads_folder(configuration):
                raise StepFailure(
                    "TimeServiceMissing",
                    f"configuration.machine.timeServers: chrony reads no file of {CHRONY_FOLDER}: add the line `sourcedir {CHRONY_FOLDER}`"
                    f" to {configuration}, then systemctl restart {unit.removesuffix('.service')}",
                )
            return unit
    if machine.container() and units.exists(TIMESYNCD):
        # It does not run here, since the clock is the host's.
        return TIMESYNCD
    raise StepFailure(
        "TimeServiceMissing",
        "configuration.machine.timeServers needs systemd-timesyncd or chrony, and neither runs on the machine:"
        f" {distribution_packages.hints().TIME_SERVICE}; or take timeServers back",
    )


def reads_folder(configuration: str) -> bool:
    pattern = rf"^\s*sourcedir\s+{CHRONY_FOLDER}/?\s*$"
    return bool(re.search(pattern, machine.text(configuration), re.MULTILINE | re.IGNORECASE))


def apply(servers: list, check: bool) -> list:
    """Has the clock kept by these servers; by none of ours without any. What changed."""
    # An empty value first takes back those that other files name.
    texts = {
        TIMESYNCD: (TIMESYNCD_FILE, f"[Time]\nNTP=\nNTP={' '.join(servers)}\n"),
        chrony(): (CHRONY_FILE, "".join(f"server {server} iburst\n" for server in servers)),
    }
    chosen = service() if servers else ""
    changed = []
    for unit, (path, text) in texts.items():
        changed += drop_in.ensure(path, text if unit == chosen else "", unit, check)
    return changed
