#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Imports container images from the artifact bundle."""

from __future__ import annotations

DOCUMENTATION = r"""
module: images
short_description: Imports container images from the artifact bundle into containerd
description:
  - Downloads the archives of images that containerd does not have, verifies each digest, imports them and deletes the archive.
  - The images wanted by name are in C(clusterwright.components), each with name, version, arch and sha256; not in check mode.
  - With C(ahead), images are only laid ready for a later run, which makes them the cluster's.
  - Imported images are pinned, since the kubelet could not fetch them again after collecting them as garbage.
options:
  wanted:
    description: The images, each by name without tag, with the tag (default the component's, see docs/playbooks.md).
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the image, without tag.
        type: str
        required: true
      version:
        description: Tag.
        type: str
  also_all_others:
    description: Import every other image of the bundle as well, which is what network plugins given as manifests need.
    type: bool
    default: false
  ahead:
    description: They are for a later run. They are not in C(clusterwright.components), and not yet among what this machine runs with.
    type: bool
    default: false
extends_documentation_fragment:
  - clusterwright.cluster.arguments.bundle
author:
  - Clusterwright developers
"""

import threading

from ansible_collections.clusterwright.cluster.plugins.module_utils import components, membership
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle import Bundle
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import Output, attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

PINNED = "io.cri-containerd.pinned=pinned"
FAILED = "ImageImportFailed"


def reference(artifact: dict) -> str:
    return f"{artifact['name']}:{artifact['version']}"


def ctr(*arguments: str, timeout: float = 300) -> str:
    output = attempt("ctr", "-n", "k8s.io", *arguments, timeout=timeout)
    if not output.ok:
        # Its warnings stand before its error, and are longer.
        error = "\n".join(line for line in output.err.splitlines() if "level=warning" not in line)
        raise StepFailure(FAILED, f"ctr {' '.join(arguments[:2])}: {Output(output.code, output.out, error).said}")
    return output.out


def others(bundle: Bundle, wanted: list) -> list:
    """The bundle's images beside those wanted by name, without Kubernetes' own: these are of other versions."""
    known = {artifact["name"] for artifact in wanted}
    kubernetes = "registry.k8s.io/kube-"
    return [
        artifact
        for artifact in bundle.artifacts
        if artifact["kind"] == "image" and artifact["name"] not in known and not artifact["name"].startswith(kubernetes)
    ]


def work(call) -> dict:
    bundle = Bundle(call.params["bundle"])
    wanted = bundle.resolve(call.params["wanted"])
    artifacts = wanted + (others(bundle, wanted) if call.params["also_all_others"] else [])
    present = set(ctr("images", "ls", "-q").split())
    records = membership.read(membership.ARTIFACTS)
    ahead = call.params["ahead"]
    due = [
        artifact
        for artifact in artifacts
        if reference(artifact) not in present
        or records.get(membership.IMAGE + reference(artifact), {}).get("sha256") != components.identity(artifact)
    ]
    lock = threading.Lock()

    def load(artifact: dict, path: str) -> None:
        # --local: through containerd's transfer service it takes twice as long.
        ctr("images", "import", "--local", "--label", PINNED, "--platform", f"linux/{artifact.get('arch', 'amd64')}", path)
        with lock:
            record = {"sha256": components.identity(artifact)}
            # No component of the cluster, as far as we know: nothing freezes its version.
            other = ahead or artifact not in wanted
            records[membership.IMAGE + reference(artifact)] = {**record, "other": True} if other else record

    # What was laid ready before is the cluster's by now.
    laid_ready = [records.get(membership.IMAGE + reference(artifact), {}) for artifact in wanted if not ahead and artifact not in due]
    taken = [record.pop("other") for record in laid_ready if "other" in record]
    if due and not call.check_mode:
        try:
            bundle.fetch_all(due, load)
        except StepFailure as failure:
            if failure.reason == FAILED:
                # A write that fails on a full disk leaves its lock in containerd's memory, and every later import of the image
                # would wait for it. It goes with the process; containers go on without it.
                attempt("systemctl", "restart", "containerd.service", timeout=60)
            raise
        finally:
            membership.save(membership.ARTIFACTS, records)
    elif taken and not call.check_mode:
        membership.save(membership.ARTIFACTS, records)
    result = {"changed": bool(due), "imported": [reference(artifact) for artifact in due]}
    if due and call.check_mode:
        result["msg"] = f"missing: {', '.join(result['imported'])}"
    if not call.check_mode and not ahead:
        result["clusterwright"] = components.report(wanted)
    return result
