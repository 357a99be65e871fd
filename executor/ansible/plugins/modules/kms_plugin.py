#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Looks whether KMS plug-ins answer on this machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kms_plugin
short_description: KMS plug-ins answer on this machine as API servers need it
description:
  - Each is asked for its status on its socket, as an API server asks it. C(KMSPluginNotReady) where one does not answer that it is well, for as
    long as that is waited for. Nothing is changed.
options:
  plugins:
    description: The plug-ins, as C(name), C(endpoint) and C(timeoutSeconds).
    type: list
    elements: dict
    required: true
  timeout_seconds:
    description: For as long each of them may take to be well.
    type: int
    default: 60
author:
  - Clusterwright developers
"""

import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import kms_plugin
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

PAUSE_SECONDS = 1


def wait(plugin: dict, patience: float) -> None:
    deadline = time.monotonic() + patience
    while True:
        why = kms_plugin.complaint(plugin["endpoint"], int(plugin["timeoutSeconds"]))
        if not why:
            return
        if time.monotonic() >= deadline:
            raise StepFailure(
                "KMSPluginNotReady",
                f"the KMS plug-in {plugin['name']} at {plugin['endpoint']} does not do: {why}. Have it run on this machine, and its socket there",
            )
        time.sleep(PAUSE_SECONDS)


def work(call) -> dict:
    plugins = call.params["plugins"]
    for plugin in plugins:
        wait(plugin, 0 if call.check_mode else call.params["timeout_seconds"])
    names = ", ".join(plugin["name"] for plugin in plugins)
    return {"changed": False, "msg": f"answers: {names}" if names else "there is no KMS plug-in"}
