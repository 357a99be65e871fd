#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Removes from the restored data of a new cluster what stands for the old machines, before an API server reads it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_restore_cleanup
short_description: Deletes Nodes, their Pods and bootstrap tokens from restored data that no API server serves yet
description:
  - All machines of the cluster are new, so every Node in the data is of the past, and so is every Pod that is bound to
    one. Their leases, certificate signing requests and the addresses of the API servers go, too.
  - What kubeadm init makes anew goes: the Deployment of CoreDNS, and kube-proxy with its configuration.
  - Directly in etcd, since an API server would have controllers beside it that act on what they find.
  - A key in etcd tells that it was done, so that it is never done again, whatever became of the run.
  - In check mode it tells whether it was done.
options:
  id:
    description: The restore's ID.
    type: str
    required: true
  prefix:
    description: What the keys of the API server begin with.
    type: str
    default: /registry
  endpoints:
    description: Where the members answer clients.
    type: list
    elements: str
    required: true
extends_documentation_fragment:
  - clusterwright.cluster.arguments.etcd
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import Etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd_keys import Keys, node_of_pod
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.restore_places import checked_id

# It begins with none of what an API server writes.
DONE = "/clusterwright.dev/restored/"
# What goes as a whole, and what that is.
WHOLE = (
    ("Node", "/minions/"),
    ("certificate signing request", "/certificatesigningrequests/"),
    ("bootstrap token", "/secrets/kube-system/bootstrap-token-"),
    ("Lease of a Node", "/leases/kube-node-lease/"),
    ("address of an API server", "/masterleases/"),
)
PODS = "/pods/"
# What kubeadm init makes anew, after controllers have begun to act on what is there: it stops at a version of CoreDNS that
# it does not know, and a kube-proxy that has started keeps to the old endpoint. CoreDNS's ConfigMap stays.
MADE_ANEW = (
    "/deployments/kube-system/coredns",
    "/daemonsets/kube-system/kube-proxy",
    "/configmaps/kube-system/kube-proxy",
)


def bound(value: bytes, key: str) -> bool:
    """Whether the Pod is on a Node."""
    try:
        return bool(node_of_pod(value))
    except (ValueError, IndexError) as error:
        said = f"the value of {key} is no Pod as an API server stores it"
        raise StepFailure("RestoreCleanupRefused", said) from error


def told(counts: list) -> str:
    parts = [f"{count} of: {what}" for what, count in counts if count]
    return f"deleted {', '.join(parts)}" if parts else "nothing to delete"


def work(call) -> dict:
    params = call.params
    done = DONE + checked_id(params["id"])
    keys = Keys(Etcd(params["pki_directory"], params["endpoints"]).alive())
    if not keys.etcd.endpoints:
        raise StepFailure("EtcdUnhealthy", "no member of etcd is healthy: run the step etcd again")
    if keys.exists(done):
        return {"changed": False, "msg": "done before"}
    if call.check_mode:
        return {"changed": True, "msg": f"{done} is missing"}
    prefix = params["prefix"].rstrip("/")
    counts = [(what, keys.delete_prefix(prefix + part)) for what, part in WHOLE]
    pods = [key for key, value in keys.each(prefix + PODS) if bound(value, key)]
    counts.append(("Pod", keys.delete(pods)))
    counts.append(("what kubeadm makes anew", keys.delete([prefix + key for key in MADE_ANEW])))
    # Last: until it is there, all of it is done again.
    keys.put(done, "done")
    return {"changed": True, "msg": told(counts)}
