#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Comes before another version of the kubelet's program."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubelet_switch
short_description: Refuses a kubelet that is newer than its API server, and removes flags that it does not know
description:
  - A kubelet must not be newer than any API server that it may reach. On a control plane that is the machine's own, on a worker whichever
    answers at the endpoint. Nobody is asked for a machine that is no node of the cluster yet, or whose kubelet is not newer than before.
  - The flags that kubeadm wrote when the machine joined stay but for those that the version does not know.
options:
  identity:
    description: Identity of the cluster for which kubeadm succeeded here, if it did.
    type: str
    required: true
  version:
    description: Version of the kubelet that is to be installed.
    type: str
    required: true
  host:
    description: Where its API server is.
    type: str
    required: true
  port:
    description: The API server's port.
    type: int
    default: 6443
  timeout_seconds:
    description: Until the API server answers.
    type: int
    default: 60
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, files, kubelet_flags, membership
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.versions import rank


def is_newer(version: str) -> bool:
    """Whether the kubelet of that version is newer than the one that was installed here, so far as that is known."""
    installed = membership.read(membership.ARTIFACTS).get("kubelet", {}).get("version", "")
    return not installed or rank(version) > rank(installed)


def check_api_server(params: dict) -> None:
    """Fails with KubeletTooNew when the API server is of an older version."""
    client = Api(api.KUBELET)
    client.server = f"https://{params['host']}:{params['port']}"
    said = wait(
        lambda: client.ask("/version"),
        params["timeout_seconds"],
        "ApiserverNotReady",
        lambda: f"{client.server} does not tell its version, and the kubelet must not be newer: no kubelet {params['version']} yet",
        0.5,
    )
    served = said.get("gitVersion", "")
    if rank(params["version"]) > rank(served):
        raise StepFailure(
            "KubeletTooNew",
            f"kubelet {params['version']} would be newer than the API server at {client.server}, which is of {served}:"
            " upgrade the control planes first",
        )


def work(call) -> dict:
    params = call.params
    # What an attempt to join that was cut off left answers nobody, and is undone before the next.
    is_node = membership.read(membership.KUBEADM).get("identity") == params["identity"]
    if is_node and is_newer(params["version"]):
        check_api_server(params)
    try:
        with open(kubelet_flags.FILE, encoding="utf-8") as source:
            text = source.read()
    except FileNotFoundError:
        return {"changed": False}
    wanted = kubelet_flags.known(text, params["version"])
    if wanted != text and not call.check_mode:
        files.replace_foreign(kubelet_flags.FILE, wanted)
    return {"changed": wanted != text}
