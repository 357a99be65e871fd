#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Reports how the services of a Karmada control plane are on this machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: karmada_info
short_description: Reports of each service of a Karmada control plane what it is made of, and whether it is healthy; read-only
description:
  - A service is healthy when its unit is active and it answers so itself, where it is asked. One that is not is reported; the task does not
    fail.
options:
  parts:
    description: The services.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: What it is reported as.
        type: str
        required: true
      unit:
        description: Its unit.
        type: str
        required: true
      health:
        description: As of C(karmada_service). Empty - the unit alone says how it is.
        type: dict
        default: {}
author:
  - Clusterwright developers
"""

from concurrent.futures import ThreadPoolExecutor

from ansible_collections.clusterwright.cluster.plugins.module_utils import karmada, units

MESSAGE_LIMIT = 256


def seen(part: dict) -> dict:
    """What there is of the part."""
    unit = part["unit"]
    report = {"name": part["name"], "digest": karmada.digest_of(unit), "healthy": False}
    if not units.exists(unit):
        return {**report, "message": f"there is no {unit}"}
    now = units.state(unit)
    if now.get("ActiveState") != "active":
        said = f"{unit} is {now.get('ActiveState')} ({now.get('SubState')}){units.journal(unit, 2)}"
        return {**report, "message": said[:MESSAGE_LIMIT]}
    well, said = karmada.answer(part["health"]) if part["health"] else (True, "")
    return {**report, "healthy": True} if well else {**report, "message": said[:MESSAGE_LIMIT]}


def work(call) -> dict:
    parts = call.params["parts"]
    with ThreadPoolExecutor(max_workers=max(1, len(parts))) as pool:
        reports = list(pool.map(seen, parts))
    sick = [report["name"] for report in reports if not report["healthy"]]
    said = f"not healthy: {', '.join(sick)}" if sick else "all are healthy"
    return {"changed": False, "clusterwright": {"kind": "karmada", "parts": reports}, "msg": said}
