#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Looks at the whole etcd cluster from one member."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_health
short_description: Checks that all members of etcd are healthy and belong to one cluster; read-only
options:
  endpoints:
    description: Client URLs of all members.
    type: list
    elements: str
    required: true
  pki_directory:
    description: Holds ca.crt and healthcheck-client.crt and .key.
    type: path
    required: true
  timeout_seconds:
    description: How long they may take.
    type: int
    default: 30
author:
  - Clusterwright developers
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import Etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure, conclude


def work(module) -> dict:
    etcd = Etcd(module.params["pki_directory"], module.params["endpoints"])
    wait(etcd.healthy, module.params["timeout_seconds"], "EtcdUnhealthy", lambda: f"etcd is not healthy: {etcd.said}")
    ids = etcd.cluster_ids()
    if len(set(ids.values())) != 1:
        seen = ", ".join(f"{endpoint}: {cluster:x}" for endpoint, cluster in sorted(ids.items()))
        raise StepFailure("EtcdSplit", f"members are of different clusters: {seen}: wipe the one that does not belong")
    return {"changed": False, "msg": f"{len(ids)} members are healthy"}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "endpoints": {"type": "list", "elements": "str", "required": True},
            "pki_directory": {"type": "path", "required": True},
            "timeout_seconds": {"type": "int", "default": 30},
        },
        supports_check_mode=True,
    )
    conclude(module, work)


if __name__ == "__main__":
    main()
