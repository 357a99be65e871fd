# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What a smoke test reports when it was cut short by a fault that is not its machine's."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle import Bundle
from ansible_collections.clusterwright.cluster.plugins.module_utils.finding import warning


class Elsewhere(Exception):
    """What fails is not this machine's fault, or not known to be."""


def image_of(params: dict) -> str:
    """The Pods' image with its tag: the component's, where none is given."""
    tag = params["version"] or Bundle(params["bundle"]).resolve([{"name": params["image"]}])[0]["version"]
    return f"{params['image']}:{tag}"


def elsewhere(node: str, fault: Elsewhere) -> dict:
    """A module's result: the machine passes, and its finding tells of the fault."""
    message = f"the smoke test on node {node} was cut short by a fault elsewhere: {fault}"
    report = {"kind": "findings", "findings": [warning("smoke-test-elsewhere", message)]}
    return {"changed": False, "clusterwright": report, "msg": message}
