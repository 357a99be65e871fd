#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Applies manifests through the API and waits for workloads."""

from __future__ import annotations

DOCUMENTATION = r"""
module: manifests
short_description: kubectl apply --server-side, reported as changed only when an object changed, then a wait for rollouts
options:
  manifests:
    description: Each with a name and its YAML.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: For messages.
        type: str
        required: true
      content:
        description: YAML, one or more documents.
        type: str
        required: true
  rollouts:
    description: Workloads that must be rolled out in the end.
    type: list
    elements: dict
    default: []
    suboptions:
      resource:
        description: C(deployments) or C(daemonsets).
        type: str
        choices: [deployments, daemonsets]
        required: true
      namespace:
        description: Where it is.
        type: str
        default: kube-system
      name:
        description: Its name.
        type: str
        required: true
  timeout_seconds:
    description: For all rollouts together.
    type: int
    default: 300
author:
  - Clusterwright developers
"""

import json
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, rollouts
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.ownership import would_change

KUBECTL = ("kubectl", f"--kubeconfig={api.ADMIN}", "--cache-dir=/run/clusterwright/kubectl")
MANAGER = "--field-manager=clusterwright"
# A custom resource applied right after its definition is not known yet for a moment.
ATTEMPTS = 4


def documents(text: str) -> dict:
    """The objects of a `kubectl -o json` answer by kind, namespace and name: one object, a List, or one document after another."""
    found = {}
    decoder = json.JSONDecoder()
    position = 0
    while position < len(text):
        rest = text[position:].lstrip()
        if not rest:
            break
        value, length = decoder.raw_decode(rest)
        position += len(text[position:]) - len(rest) + length
        for thing in value.get("items", [value]):
            metadata = thing.get("metadata", {})
            found[(thing.get("kind"), metadata.get("namespace", ""), metadata.get("name"))] = thing
    return found


def versions(text: str) -> dict:
    """resourceVersion by object."""
    return {key: thing.get("metadata", {}).get("resourceVersion") for key, thing in documents(text).items()}


def differs(manifest: dict) -> list:
    """The objects of the manifest that applying it would change in what is ours; the manifest's name where that cannot be told."""
    content = manifest["content"]
    shown = ("-o", "json", "--show-managed-fields")
    live = attempt(*KUBECTL, "get", "-f", "-", "--ignore-not-found", *shown, stdin=content, timeout=120)
    apply_dry = ("apply", "--server-side", "--force-conflicts", MANAGER, "--dry-run=server", "-f", "-")
    dry = attempt(*KUBECTL, *apply_dry, *shown, stdin=content, timeout=120)
    if not (live.ok and dry.ok):
        return [f"manifest {manifest['name']}"]
    known = documents(live.out)
    return [
        f"{key[0]} {key[2]}"
        for key, applied in documents(dry.out).items()
        if key not in known or would_change(known[key], applied)
    ]


def apply(manifest: dict, check: bool) -> list:
    """Applies one manifest; returns the objects that differed."""
    if check:
        return differs(manifest)
    content = manifest["content"]
    before = attempt(*KUBECTL, "get", "-f", "-", "-o", "json", "--ignore-not-found", stdin=content)
    known = versions(before.out) if before.ok else {}
    arguments = [*KUBECTL, "apply", "--server-side", "--force-conflicts", MANAGER, "-o", "json", "-f", "-"]
    for number in range(1, ATTEMPTS + 1):
        output = attempt(*arguments, stdin=content, timeout=120)
        if output.ok:
            break
        if number == ATTEMPTS or "no matches for kind" not in output.err:
            raise StepFailure("ManifestRefused", f"manifest {manifest['name']}: {output.said}")
        time.sleep(0.5)
    now = versions(output.out)
    return [f"{kind} {name}" for (kind, namespace, name), version in now.items() if known.get((kind, namespace, name)) != version]


def work(call) -> dict:
    changed = []
    for manifest in call.params["manifests"]:
        changed += apply(manifest, call.check_mode)
    if call.params["rollouts"]:
        rollouts.wait_for(Api(api.ADMIN), call.params["rollouts"], call.params["timeout_seconds"])
    return {"changed": bool(changed), "objects": changed, "msg": f"differing: {', '.join(changed)}" if changed and call.check_mode else ""}
