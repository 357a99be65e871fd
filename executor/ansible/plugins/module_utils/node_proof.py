# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""That this machine's kubelet works for the cluster since it began: its Node may be Ready for a while after it has lost the API."""

from __future__ import annotations

import datetime
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, healthz, kubelet, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def began() -> float:
    """When the kubelet began, in seconds since the epoch."""
    since_boot = units.state(kubelet.UNIT).get("ExecMainStartTimestampMonotonic", "0")
    return time.time() - (time.monotonic() - int(since_boot or "0") / 1_000_000)


def renewed(lease: dict | None) -> float:
    """When a Lease was renewed, by the clock of who renewed it."""
    moment = ((lease or {}).get("spec") or {}).get("renewTime")
    return datetime.datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp() if moment else 0.0


def complaint(client: Api, node_name: str) -> str:
    """Why it is not proved yet; empty when it is. `client` may read the Node and its Lease."""
    well, said = healthz.answer(healthz.KUBELET)
    if not well:
        return f"the kubelet is not healthy: {said}"
    try:
        node = client.get(f"/api/v1/nodes/{node_name}")
        lease = client.get(f"{LEASES}/{node_name}")
    except (OSError, api.Refused) as error:
        return f"{client.server} does not answer for Node {node_name}: {error}"
    if not api.is_ready(node):
        why = api.condition(node, "Ready").get("message", "it has no condition yet") if node else "there is none"
        return f"Node {node_name} is not Ready: {why}"
    if renewed(lease) < began():
        return f"the kubelet has not renewed the Lease of Node {node_name} since it began"
    return ""
