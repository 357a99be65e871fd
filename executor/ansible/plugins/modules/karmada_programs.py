#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The programs of a Karmada control plane, each version beside those of before."""

from __future__ import annotations

DOCUMENTATION = r"""
module: karmada_programs
short_description: Puts programs of a Karmada control plane from the artifact bundle into directories of their versions
description:
  - Each is verified by its digest before it comes into its place, /opt/clusterwright/karmada/VERSION/bin/NAME.
  - Of each program the two former versions stay, so that a service goes back to them without a download. Others go, unless a unit or a
    process has them.
  - Which programs these are is in C(clusterwright.components), each with name, version, arch and sha256; not in check mode.
options:
  wanted:
    description: The programs, by name and version.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name in the index.
        type: str
        required: true
      version:
        description: Version, without v.
        type: str
        required: true
extends_documentation_fragment:
  - clusterwright.cluster.arguments.bundle
author:
  - Clusterwright developers
"""

import os
import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import components, files, karmada, membership, processes, selinux
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle import Bundle
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.installed import fingerprint, in_place, place

FORMER = 2
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]{0,63}")


def check_variables(wanted: list) -> None:
    """Names and versions are parts of paths."""
    for entry in wanted:
        name, version = entry["name"], entry["version"]
        if not NAME.fullmatch(name) or not VERSION.fullmatch(version) or version.startswith("v"):
            raise StepFailure("InvalidVariables", f"karmada_programs: {name!r} {version!r} is no program with a version without v")


def directory_of(version: str) -> str:
    return f"{karmada.PROGRAMS}/{version}/bin"


class Programs:
    """The programs on this machine: by `NAME VERSION` what was put there, the last one last."""

    def __init__(self) -> None:
        self.known = dict(membership.read(membership.KARMADA).get("programs") or {})

    def save(self) -> None:
        membership.save(membership.KARMADA, {**membership.read(membership.KARMADA), "programs": self.known})

    def has(self, artifact: dict, version: str) -> bool:
        return in_place(self.known.get(f"{artifact['name']} {version}", {}), artifact, directory_of(version))

    def next(self) -> int:
        return 1 + max((record.get("number", 0) for record in self.known.values()), default=0)

    def add(self, artifact: dict, version: str, path: str) -> None:
        """Puts the program that was fetched to the path into its place."""
        if artifact["kind"] != "file":
            raise StepFailure("ArtifactInvalid", f"{artifact['name']} {version} is {artifact['kind']} in the bundle, and must be a file")
        target = f"{directory_of(version)}/{artifact['name']}"
        with open(path, "rb") as source:
            place(source, target)
        selinux.restore([target])
        self.known[f"{artifact['name']} {version}"] = {
            "number": self.next(),
            "sha256": artifact["sha256"],
            "directory": directory_of(version),
            "files": {target: fingerprint(target)},
        }

    def surplus(self, wanted: list) -> list:
        """(key, path) of programs that are none of the wanted ones, nor of the two that came before those, and that nothing has."""
        used = in_use()
        kept = {f"{entry['name']} {entry['version']}" for entry in wanted}
        found = []
        for name in sorted({entry["name"] for entry in wanted}):
            former = [key for key in self.known if key.partition(" ")[0] == name and key not in kept]
            former.sort(key=lambda key: self.known[key].get("number", 0), reverse=True)
            paths = [(key, path) for key in former[FORMER:] for path in self.known[key].get("files", {})]
            found += [(key, path) for key, path in paths if path not in used]
        return found

    def prune(self, wanted: list) -> None:
        for key, path in self.surplus(wanted):
            files.remove(path)
            del self.known[key]
            for folder in (os.path.dirname(path), os.path.dirname(os.path.dirname(path))):
                try:
                    os.rmdir(folder)
                except OSError:
                    break


def in_use() -> set:
    """Programs that units start, and that run."""
    texts = [files.text(karmada.unit_path(unit)) or "" for unit in karmada.units()]
    starts = [re.search(r"^ExecStart=(\S+)", text, re.MULTILINE) for text in texts]
    return {found.group(1) for found in starts if found} | set(processes.of_planes().values())


def work(call) -> dict:
    wanted, check = call.params["wanted"], call.check_mode
    check_variables(wanted)
    bundle = Bundle(call.params["bundle"])
    resolved = list(zip(wanted, bundle.resolve(wanted)))
    programs = Programs()
    due = [(entry, artifact) for entry, artifact in resolved if not programs.has(artifact, entry["version"])]
    if not check:
        karmada.take()
        versions = {id(artifact): entry["version"] for entry, artifact in due}
        try:
            bundle.fetch_all([artifact for _entry, artifact in due], lambda artifact, path: programs.add(artifact, versions[id(artifact)], path))
            programs.prune(wanted)
        finally:
            programs.save()
    missing = [f"{entry['name']} {entry['version']}" for entry, _artifact in due]
    result = {"changed": bool(due), "installed": missing}
    if check:
        return {**result, "msg": f"missing or changed: {', '.join(missing)}" if due else "all are there"}
    return {**result, "clusterwright": components.report([artifact for _entry, artifact in resolved])}
