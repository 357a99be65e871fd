#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Installs programs from the artifact bundle."""

from __future__ import annotations

DOCUMENTATION = r"""
module: artifacts
short_description: Installs programs from the artifact bundle
description:
  - Reads the bundle's index, downloads side by side what this machine does not have yet, verifies each digest before
    anything is unpacked, and moves every file into place whole.
  - Where SELinux is at work, each file gets the label that the policy has for it.
  - What was installed is remembered in /etc/clusterwright/artifacts.json, so that a second run only compares.
  - Which programs these are is in C(clusterwright.components), each with name, version, arch and sha256; not in check mode.
options:
  wanted:
    description: The programs, each by name, with the version (default the component's, see docs/playbooks.md) and where it goes.
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
        description: Directory that the program, or the archive's files, are put into. Absent, the version is only looked up.
        type: path
      strip:
        description: Directories dropped from the front of each name in an archive.
        type: int
        default: 0
      only:
        description: The files wanted of an archive, by base name; all when absent.
        type: list
        elements: str
extends_documentation_fragment:
  - clusterwright.cluster.arguments.bundle
author:
  - Clusterwright developers
"""

import os
import tarfile

from ansible_collections.clusterwright.cluster.plugins.module_utils import components, membership, selinux
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle import Bundle
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.installed import fingerprint, in_place, place


def unpack(archive: str, name: str, directory: str, strip: int, only: list) -> list:
    """Puts the regular files of the archive into the directory; nothing may leave it."""
    placed = []
    with tarfile.open(archive, "r:*") as members:
        for member in members:
            parts = [part for part in member.name.split("/") if part not in ("", ".")][strip:]
            if not member.isreg() or not parts or (only and parts[-1] not in only):
                continue
            if ".." in parts:
                raise StepFailure("ArtifactInvalid", f"archive {name} holds the path {member.name}, which leaves it")
            path = os.path.join(directory, *parts)
            content = members.extractfile(member)
            if content is not None:
                place(content, path)
                placed.append(path)
    missing = set(only or []) - {os.path.basename(path) for path in placed}
    if missing or not placed:
        raise StepFailure("ArtifactInvalid", f"archive {name} lacks {', '.join(sorted(missing)) or 'any file'}")
    return placed


def work(call) -> dict:
    wanted = call.params["wanted"]
    bundle = Bundle(call.params["bundle"])
    resolved = bundle.resolve(wanted)
    records = membership.read(membership.ARTIFACTS)
    due = []
    for entry, artifact in zip(wanted, resolved):
        if entry["directory"] and not in_place(records.get(artifact["name"], {}), artifact, entry["directory"]):
            due.append((entry, artifact))

    def install(artifact: dict, path: str) -> None:
        entry = next(entry for entry, candidate in due if candidate is artifact)
        directory = entry["directory"]
        if artifact["kind"] == "file":
            target = os.path.join(directory, artifact["name"])
            # The cache may be on another file system; the copy is from memory anyway.
            with open(path, "rb") as source:
                place(source, target)
            placed = [target]
        else:
            placed = unpack(path, artifact["name"], directory, entry["strip"], entry["only"])
        selinux.restore(placed)
        records[artifact["name"]] = {
            "version": artifact["version"],
            "sha256": artifact["sha256"],
            "directory": directory,
            "files": {file: fingerprint(file) for file in placed},
        }

    if due and not call.check_mode:
        try:
            bundle.fetch_all([artifact for _entry, artifact in due], install)
        finally:
            membership.save(membership.ARTIFACTS, records)
    result = {
        "changed": bool(due),
        "installed": [f"{artifact['name']} {artifact['version']}" for _entry, artifact in due],
        "versions": {artifact["name"]: artifact["version"] for artifact in resolved},
    }
    if due and call.check_mode:
        result["msg"] = f"missing or changed: {', '.join(result['installed'])}"
    if not call.check_mode:
        result["clusterwright"] = components.report([artifact for entry, artifact in zip(wanted, resolved) if entry["directory"]])
    return result
