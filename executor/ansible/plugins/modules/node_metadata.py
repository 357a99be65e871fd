#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Labels and taints of Nodes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_metadata
short_description: Adds labels and taints to Nodes through the API; those of others stay
options:
  nodes:
    description: Each with name, labels, taints (C(key=value:Effect) or C(key:Effect)).
    type: list
    elements: dict
    required: true
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils import api
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, Refused
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


def parsed(taint: str) -> dict:
    key, _colon, effect = taint.rpartition(":")
    key, _equals, value = key.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def patch_of(node: dict, labels: dict, taints: list) -> dict:
    """What the Node lacks; empty when nothing."""
    patch: dict = {}
    present = node["metadata"].get("labels") or {}
    lacking = {key: str(value) for key, value in labels.items() if present.get(key) != str(value)}
    if lacking:
        patch["metadata"] = {"labels": lacking}
    current = (node.get("spec") or {}).get("taints") or []
    wanted = [parsed(taint) for taint in taints]
    identity = {(taint["key"], taint["effect"]): taint.get("value", "") for taint in current}
    if any(identity.get((taint["key"], taint["effect"])) != taint.get("value", "") for taint in wanted):
        keys = {(taint["key"], taint["effect"]) for taint in wanted}
        patch["spec"] = {"taints": [taint for taint in current if (taint["key"], taint["effect"]) not in keys] + wanted}
        # The list is replaced whole, so it must be the one that was read.
        patch.setdefault("metadata", {})["resourceVersion"] = node["metadata"]["resourceVersion"]
    return patch


def bring(client: Api, entry: dict, check: bool) -> bool:
    """Makes one Node have what it should. True when it lacked something."""
    path = f"/api/v1/nodes/{entry['name']}"
    for last in (False, False, True):
        node = client.get(path)
        if node is None:
            raise StepFailure("NodeNotReady", f"node {entry['name']} does not exist")
        patch = patch_of(node, entry.get("labels") or {}, entry.get("taints") or [])
        if not patch or check:
            return bool(patch)
        try:
            client.request("PATCH", path, patch, api.MERGE)
            return True
        except Refused as refused:
            if refused.status != 409 or last:
                raise StepFailure("NodeRefused", f"failed to label or taint node {entry['name']}: {refused}") from refused
    return False


def work(call) -> dict:
    entries = [entry for entry in call.params["nodes"] if entry.get("labels") or entry.get("taints")]
    if not entries:
        return {"changed": False, "nodes": []}
    client = Api(api.ADMIN)
    changed = [entry["name"] for entry in entries if bring(client, entry, call.check_mode)]
    return {"changed": bool(changed), "nodes": changed, "msg": f"differed: {', '.join(changed)}" if changed else "all there"}
