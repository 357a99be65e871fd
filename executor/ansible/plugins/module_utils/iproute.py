# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What ip of iproute2 shows."""

from __future__ import annotations

import json

from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt, find


def shown(*arguments: str) -> list:
    """What ip says in JSON; nothing where there is no ip, or it fails."""
    if not find("ip"):
        return []
    output = attempt("ip", "-json", *arguments)
    try:
        return json.loads(output.out) if output.ok and output.out.strip() else []
    except ValueError:
        return []
