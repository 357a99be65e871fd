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
  estimators:
    description:
      - The estimators of members, C(name) - the member. Absent - they are not looked at. Those that do not work are reported by their
        members.
    type: list
    elements: dict
    suboptions:
      name:
        description: The member.
        type: str
        required: true
      unit:
        description: Its unit.
        type: str
        required: true
      health:
        description: As of C(karmada_service).
        type: dict
        default: {}
author:
  - Clusterwright developers
"""

from concurrent.futures import ThreadPoolExecutor

from ansible_collections.clusterwright.cluster.plugins.module_utils import karmada, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.files import text

MESSAGE_LIMIT = 256
# Questions that are asked at once.
AT_ONCE = 32


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


def estimators_seen(wanted: list) -> dict:
    """What there is of the estimators of members: what all of them are made of, and those that do not work. A difference between what was
    brought and what is here shows as another digest."""
    digest = (text(karmada.ESTIMATORS) or "").strip()
    there = karmada.estimators()
    if digest and there != sorted(one["unit"] for one in wanted):
        digest = "incomplete"
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        reports = [report for report in pool.map(seen, wanted) if not report["healthy"]]
    members = {report["name"]: report["message"] for report in reports}
    return {"name": "estimators", "digest": digest, "healthy": True, "members": members}


def work(call) -> dict:
    parts, estimators = call.params["parts"], call.params.get("estimators")
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        reports = list(pool.map(seen, parts))
    if estimators is not None:
        reports.append(estimators_seen(estimators))
    sick = [report["name"] for report in reports if not report["healthy"]]
    said = f"not healthy: {', '.join(sick)}" if sick else "all are healthy"
    return {"changed": False, "clusterwright": {"kind": "karmada", "parts": reports}, "msg": said}
