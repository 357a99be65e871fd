#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Refuses a machine whose container runtime is another's."""

from __future__ import annotations

DOCUMENTATION = r"""
module: container_runtime
short_description: Fails where a container runtime is installed that is not ours, and where a runtime's program is missing
description:
  - Read-only. The preflight step finds the former; this holds also where that finding is ignored.
options:
  runtimes:
    description:
      - Further runtimes that containerd is to have, C(name) and C(type), C(path) of the shim or C(binaryName) of a program like runc, and
        C(configPath) of the file that the shim reads. What is absent is where containerd looks by itself.
    type: list
    elements: dict
    default: []
author:
  - Clusterwright developers
"""

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import runtime
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import find
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


# The program that comes with containerd.
RUNC_SHIM = "containerd-shim-runc-v2"


def missing(wanted: dict) -> str:
    """A program or file of a runtime that is not here; empty, if all are."""
    kind, version = wanted["type"].split(".")[-2:]
    shim = wanted.get("path") or f"containerd-shim-{kind}-{version}"
    programs = [shim] if shim != RUNC_SHIM else []
    for program in programs + ([wanted["binaryName"]] if wanted.get("binaryName") else []):
        if not find(program):
            return program
    path = wanted.get("configPath")
    return path if path and not os.path.isfile(path) else ""


def work(call) -> dict:
    for wanted in call.params["runtimes"]:
        lacks = missing(wanted)
        if lacks:
            raise StepFailure(
                "RuntimeNotInstalled",
                f"configuration.containerd.runtimes[{wanted['name']}]: {lacks} is not on the machine, or cannot be run: install it, or"
                " correct the runtime",
            )
    found = runtime.foreign()
    if found and not runtime.taken_over():
        raise StepFailure("ForeignRuntime", runtime.what_to_do(found))
    return {"changed": False, "msg": "no other container runtime is here"}
