# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""How much of systemd's journal this machine keeps."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils import drop_in

UNIT = "systemd-journald.service"
FILE = "/etc/systemd/journald.conf.d/90-clusterwright.conf"


def apply(limits: dict, check: bool) -> list:
    """Limits the journal; without any limit it is as the distribution has it. What changed."""
    lines = []
    size, days = limits.get("maxUseMegabytes"), limits.get("maxRetentionDays")
    if size:
        # The second where it is in memory only.
        lines += [f"SystemMaxUse={size}M", f"RuntimeMaxUse={size}M"]
    if days:
        lines.append(f"MaxRetentionSec={days}day")
    return drop_in.ensure(FILE, "".join(f"{line}\n" for line in ["[Journal]", *lines]) if lines else "", UNIT, check)
