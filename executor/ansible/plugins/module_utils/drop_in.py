# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""A file of ours beside those of a service of the distribution, which reads it when it starts."""

from __future__ import annotations

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, restarts, units

HEAD = "# Written by clusterwright.\n"


def ensure(path: str, content: str, unit: str, check: bool) -> list:
    """Makes the file hold the content, and without any makes it go; restarts the unit, if it runs, unless it has read that. What
    changed."""
    if not content and not os.path.lexists(path) and not restarts.is_remembered(unit):
        return []
    now = units.state(unit)
    if not content and not check and os.path.lexists(path):
        # So that an attempt that is cut short after this knows that the unit has read it.
        restarts.remember(unit, now, [path])
    wrote = files.write(path, HEAD + content, 0o644, check) if content else files.remove(path, check)
    changed = [path] if wrote else []
    if now.get("ActiveState") != "active" or not (changed or restarts.due(unit, now, [path])):
        return changed
    if not check:
        units.systemctl("restart", unit, what=f"restart {unit}")
        restarts.remember(unit, units.state(unit), [path])
    return changed or [unit]
