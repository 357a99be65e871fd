#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Gives CoreDNS the image of its version."""

from __future__ import annotations

DOCUMENTATION = r"""
module: coredns
short_description: CoreDNS with the image of its version
description:
  - Sets the tag in kubeadm's configuration, so that it stays, and the image of the Deployment kube-system/coredns; waits until its Pods
    run with it. Its configuration, its replicas and all else stay as they are.
  - A Deployment that is not there, or not of kubeadm's, is not made.
options:
  image:
    description: The image, with its tag.
    type: str
    required: true
  timeout_seconds:
    description: Until the Pods run with it.
    type: int
    default: 300
extends_documentation_fragment:
  - clusterwright.cluster.arguments.apiserver
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, coredns, kubeadm_config
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, Refused
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


def work(call) -> dict:
    params = call.params
    client = Api(api.ADMIN)
    client.server = f"https://{params['address']}:{params['port']}"
    try:
        return play(client, params["image"], params["timeout_seconds"], call.check_mode)
    except (OSError, Refused) as error:
        raise StepFailure("ApiserverNotReady", f"failed to ask the API: {error}") from error


def play(client: Api, image: str, timeout: float, check: bool) -> dict:
    tag = image.rpartition(":")[2]
    _found, text = kubeadm_config.read(client)
    said = []
    if kubeadm_config.with_dns_tag(text, tag) != text:
        said.append(f"the cluster's configuration does not say {tag} of CoreDNS")
    present = coredns.present(client)
    if present and present != image:
        said.append(f"CoreDNS: {present} -> {image}")
    if not check:
        kubeadm_config.edit(client, lambda _found, text: (kubeadm_config.with_dns_tag(text, tag), None))
        if present and present != image:
            coredns.roll(client, image, timeout)
    nobody = "there is no Deployment kube-system/coredns of kubeadm's: CoreDNS is left to whoever runs it"
    return {"changed": bool(said), "msg": "; ".join(said) or (f"CoreDNS has {image}" if present else nobody)}
