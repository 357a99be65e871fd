#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Brings programs of the artifact bundle to a machine ahead of the run that installs them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: prefetch
short_description: Downloads programs from the artifact bundle and keeps them, verified; installs nothing
description:
  - What is installed, or was prefetched, is not downloaded again. Of each program one version is kept ahead, the last that was asked for.
  - The module C(artifacts) takes the files from there, and they are gone then.
  - Tells the names of what was missing in C(installed), in check mode of what is missing.
options:
  wanted:
    description: The programs, as the module C(artifacts) takes them. One without a directory is only looked up.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name in the index.
        type: str
        required: true
      version:
        description: Version, with or without v.
        type: str
      directory:
        description: Directory that it will be installed into.
        type: path
      strip:
        description: Of no effect here.
        type: int
        default: 0
      only:
        description: Of no effect here.
        type: list
        elements: str
extends_documentation_fragment:
  - clusterwright.cluster.arguments.bundle
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils import membership, prefetched
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle import Bundle
from ansible_collections.clusterwright.cluster.plugins.module_utils.installed import in_place


def work(call) -> dict:
    wanted = call.params["wanted"]
    bundle = Bundle(call.params["bundle"])
    records = membership.read(membership.ARTIFACTS)
    due = [
        artifact
        for entry, artifact in zip(wanted, bundle.resolve(wanted))
        if entry["directory"]
        and not in_place(records.get(artifact["name"], {}), artifact, entry["directory"])
        and not prefetched.find(artifact)
    ]
    if not call.check_mode:
        bundle.fetch_all(due, prefetched.keep)
    return {"changed": bool(due), "installed": [f"{artifact['name']} {artifact['version']}" for artifact in due]}
