#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Refuses a machine whose container runtime is another's."""

from __future__ import annotations

DOCUMENTATION = r"""
module: container_runtime
short_description: Fails where a container runtime is installed that is not ours, before anything of it would be overwritten
description:
  - Read-only. The preflight step finds the same; this holds also where that finding is ignored.
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils import runtime
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


def work(_call) -> dict:
    found = runtime.foreign()
    if found and not runtime.taken_over():
        raise StepFailure("ForeignRuntime", runtime.what_to_do(found))
    return {"changed": False, "msg": "no other container runtime is here"}
