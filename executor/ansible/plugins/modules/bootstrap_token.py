#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The token with which further machines join."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bootstrap_token
short_description: Makes a bootstrap token valid while one of the Nodes that need it is missing
description:
  - After kubeadm init nothing is left to do. In a later attempt the token is another one, which the cluster does not know yet.
options:
  token:
    description: The token.
    type: str
    required: true
  nodes:
    description: Names of the Nodes that join with it.
    type: list
    elements: str
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
    wanted = secret(call.params["token"], call.params["hours"])
    name = wanted["metadata"]["name"]
    try:
        missing = [node for node in call.params["nodes"] if client.get(f"/api/v1/nodes/{node}") is None]
        if not missing or client.get(f"{SECRETS}/{name}") is not None:
            return {"changed": False, "msg": "nothing to do"}
        if not call.check_mode:
            client.request("POST", SECRETS, wanted)
    except Refused as refused:
        raise StepFailure("BootstrapTokenRefused", f"failed to write Secret {name} in kube-system: {refused}") from refused
    return {"changed": True, "msg": f"written for {', '.join(missing)}"}
