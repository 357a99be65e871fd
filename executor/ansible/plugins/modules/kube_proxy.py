#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The mode of kube-proxy in a cluster that runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kube_proxy
short_description: Has kube-proxy work in the mode that is configured, on all Nodes, and in the one of before when none is any more
description:
  - Edits the ConfigMap, and has the DaemonSet's Pods made anew, a tenth of them at once. A kube-proxy that starts takes back the rules of
    the other mode.
  - In check mode it tells what would change.
options:
  mode:
    description: C(iptables) or C(nftables). Empty - none is configured.
    type: str
    default: ""
  timeout_seconds:
    description: Until all Pods run.
    type: int
    default: 600
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils import kube_proxy
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import ADMIN, Api, Refused
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


def work(call) -> dict:
    params, check = call.params, call.check_mode
    try:
        changed = kube_proxy.apply(Api(ADMIN), params["mode"], check, params["timeout_seconds"])
    except (OSError, Refused) as error:
        raise StepFailure("ApiserverNotReady", f"failed to look at kube-proxy: {error}") from error
    verb = "differing" if check else "set"
    return {"changed": bool(changed), "differences": changed, "msg": f"{verb}: {', '.join(changed)}" if changed else "nothing to do"}
