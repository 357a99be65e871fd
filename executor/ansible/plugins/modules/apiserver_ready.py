#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Looks at this machine's API server."""

from __future__ import annotations

DOCUMENTATION = r"""
module: apiserver_ready
short_description: Checks that the API server of this machine says it is ready, with a certificate of the cluster's CA; read-only
options:
  timeout_seconds:
    description: How long to wait.
    type: int
    default: 60
extends_documentation_fragment:
  - clusterwright.cluster.arguments.apiserver
  - clusterwright.cluster.arguments.installed
author:
  - Clusterwright developers
"""


from ansible_collections.clusterwright.cluster.plugins.module_utils import healthz, membership
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.trust import believing

CA = "/etc/kubernetes/pki/ca.crt"


def work(call) -> dict:
    membership.check_kubeadm(call.params["identity"])
    try:
        context = believing(cafile=CA)
    except OSError as error:
        raise StepFailure("ApiserverNotReady", f"failed to read {CA}: {error}: was the control-plane step run?") from error
    target = healthz.apiserver(call.params["address"], call.params["port"])
    said = ""

    def ready() -> bool:
        nonlocal said
        well, said = healthz.answer(target, context)
        if well and call.params["version"]:
            _well, said = healthz.answer((*target[:3], "/version"), context)
            return f'"gitVersion": "{call.params["version"]}"' in said
        return well

    wait(ready, call.params["timeout_seconds"], "ApiserverNotReady", lambda: f"the API server is not ready: {said}")
    return {"changed": False, "msg": "ready"}
