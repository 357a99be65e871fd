#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The tokens with which further machines join."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bootstrap_token
short_description: Makes the bootstrap token of each Node valid that is missing yet
description:
  - After kubeadm init nothing is left to do. In a later attempt the tokens are others, which the cluster does not know yet.
options:
  tokens:
    description: The tokens by the names of the Nodes that join with them.
    type: dict
    required: true
  hours:
    description: How long it is valid.
    type: int
    default: 2
author:
  - Clusterwright developers
"""

import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import api
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, Refused
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

SECRETS = "/api/v1/namespaces/kube-system/secrets"


def secret(token: str, hours: int) -> dict:
    """The Secret that kubeadm would write."""
    identifier, _dot, key = token.partition(".")
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": f"bootstrap-token-{identifier}"},
        "stringData": {
            "token-id": identifier,
            "token-secret": key,
            "expiration": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + hours * 3600)),
            "usage-bootstrap-authentication": "true",
            "usage-bootstrap-signing": "true",
            "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
        },
    }


def work(call) -> dict:
    client = Api(api.ADMIN)
    written = []
    for node, token in sorted(call.params["tokens"].items()):
        wanted = secret(token, call.params["hours"])
        name = wanted["metadata"]["name"]
        try:
            if client.get(f"/api/v1/nodes/{node}") is not None or client.get(f"{SECRETS}/{name}") is not None:
                continue
            if not call.check_mode:
                client.request("POST", SECRETS, wanted)
        except Refused as refused:
            raise StepFailure("BootstrapTokenRefused", f"failed to write Secret {name} in kube-system: {refused}") from refused
        written.append(node)
    return {"changed": bool(written), "msg": f"written for {', '.join(written)}" if written else "nothing to do"}
