#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Reports a machine's facts, what a cluster left on it, or its components."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_info
short_description: Facts of a machine, whether it is clean of every cluster, or the components installed on it; read-only
options:
  report:
    description: What to report.
    type: str
    choices: [facts, clean, components]
    required: true
  must_be_clean:
    description: Fail with reason NotClean when it is not.
    type: bool
    default: false
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils import components, leftovers, machine
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


def work(call) -> dict:
    if call.params["report"] == "facts":
        return {
            "changed": False,
            "clusterwright": machine.facts(),
            "ansible_facts": {"clusterwright_machine": machine.relaxations()},
        }
    if call.params["report"] == "components":
        return {"changed": False, "clusterwright": components.installed()}
    left = leftovers.find_all()
    report = {"kind": "clean", "clean": not left, "leftovers": left}
    if left and call.params["must_be_clean"]:
        raise StepFailure("NotClean", f"left on the machine: {', '.join(left)}", clusterwright=report)
    return {"changed": False, "clusterwright": report, "msg": "clean" if not left else f"left: {', '.join(left)}"}
