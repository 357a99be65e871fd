#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Looks at the whole etcd cluster from one member."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_health
short_description: Checks that all members of etcd are healthy and belong to one cluster; read-only
options:
  name:
    description: This machine's member, which must vote. Empty - not looked at.
    type: str
    default: ""
  endpoints:
    description: Client URLs of all members.
    type: list
    elements: str
    required: true
  timeout_seconds:
    description: How long they may take.
    type: int
    default: 30
extends_documentation_fragment:
  - clusterwright.cluster.arguments.etcd
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import Etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


def work(call) -> dict:
    etcd = Etcd(call.params["pki_directory"], call.params["endpoints"])
    wait(etcd.healthy, call.params["timeout_seconds"], "EtcdUnhealthy", lambda: f"etcd is not healthy: {etcd.said}")
    name = call.params["name"]
    if name and not any(member.get("name") == name and not member.get("isLearner") for member in etcd.members()):
        raise StepFailure("EtcdUnhealthy", f"{name} is no voting member of etcd: the step runs again")
    ids = etcd.cluster_ids()
    if len(set(ids.values())) != 1:
        seen = ", ".join(f"{endpoint}: {cluster:x}" for endpoint, cluster in sorted(ids.items()))
        raise StepFailure("EtcdSplit", f"members are of different clusters: {seen}: wipe the one that does not belong")
    return {"changed": False, "msg": f"{len(ids)} members are healthy"}
