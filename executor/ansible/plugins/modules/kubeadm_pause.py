#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Tells which pause image a version of kubeadm uses."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubeadm_pause
short_description: Tells the tag of the pause image that kubeadm of a version uses, in C(versions); read-only
description:
  - Before kubeadm upgrades a cluster it runs a Job with this image, wherever there is room. Only kubeadm knows its tag.
  - Asks the program that is installed, or was prefetched.
options:
  program:
    description: kubeadm in the bundle, as the module C(artifacts) takes it, with its directory.
    type: dict
    required: true
  repository:
    description: Where Kubernetes' images are.
    type: str
    required: true
extends_documentation_fragment:
  - clusterwright.cluster.arguments.bundle
author:
  - Clusterwright developers
"""

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import command, membership, prefetched
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle import Bundle
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.installed import in_place


def program(artifact: dict, directory: str) -> str:
    """The path of kubeadm of this very version."""
    if in_place(membership.read(membership.ARTIFACTS).get(artifact["name"], {}), artifact, directory):
        return os.path.join(directory, artifact["name"])
    found = prefetched.find(artifact)
    if not found:
        raise StepFailure("NotPrefetched", f"{artifact['name']} {artifact['version']} is not on this machine: the step runs again")
    return found


def work(call) -> dict:
    wanted, repository = call.params["program"], call.params["repository"]
    (artifact,) = Bundle(call.params["bundle"]).resolve([wanted])
    version = artifact["version"].removeprefix("v")
    said = command.run(
        program(artifact, wanted["directory"]),
        "config",
        "images",
        "list",
        f"--kubernetes-version=v{version}",
        f"--image-repository={repository}",
        reason="KubeadmFailed",
    )
    image = f"{repository}/pause"
    for line in said.splitlines():
        name, _colon, tag = line.strip().rpartition(":")
        if name == image and tag:
            return {"changed": False, "versions": {image: tag}}
    raise StepFailure("KubeadmFailed", f"kubeadm {version} names no image {image} among those that it uses: {said.strip()[:500]}")
