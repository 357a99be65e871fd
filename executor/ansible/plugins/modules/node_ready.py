#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Waits for this machine's Node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_ready
short_description: Checks that this machine's kubelet is healthy and its Node exists, or is Ready; read-only
options:
  ready:
    description: Wait until the Node is Ready, not only until it exists.
    type: bool
    default: true
  timeout_seconds:
    description: How long to wait.
    type: int
    default: 120
extends_documentation_fragment:
  - clusterwright.cluster.arguments.installed
  - clusterwright.cluster.arguments.node
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, healthz, membership, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


def version(node: dict) -> str:
    """Of the kubelet that reports the Node."""
    return ((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion", "")


def work(call) -> dict:
    params = call.params
    name = params["node_name"]
    membership.check_kubeadm(params["identity"])
    well, said = healthz.answer(healthz.KUBELET)
    if not well:
        raise StepFailure("KubeletNotHealthy", f"the kubelet is not healthy: {said}{units.journal('kubelet.service')}")
    client = Api(api.KUBELET)
    seen: dict = {}

    def arrived() -> bool:
        node = client.ask(f"/api/v1/nodes/{name}")
        seen["node"] = node
        return node is not None and (api.is_ready(node) or not params["ready"]) and params["version"] in ("", version(node))

    def missing() -> str:
        if seen.get("node") is None:
            return f"node {name} does not exist, or {client.server} does not answer"
        if params["version"] not in ("", version(seen["node"])):
            return f"node {name} runs kubelet {version(seen['node']) or 'of no version'}, and {params['version']} is wanted"
        return f"node {name} is not Ready: {api.condition(seen['node'], 'Ready').get('message', 'no condition yet')}"

    wait(arrived, params["timeout_seconds"], "NodeNotReady", missing)
    return {"changed": False, "msg": f"node {name} is {'Ready' if params['ready'] else 'registered'}"}
