# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The components of a cluster: what is frozen of them when a run begins, and what a machine reports of them."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils import membership
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle_index import SHA256
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import architecture
from ansible_collections.clusterwright.cluster.plugins.module_utils.versions import rank

FIELDS = {"version", "digests", "field"}


def invalid(place: str, value: object, allowed: str) -> StepFailure:
    return StepFailure("InvalidVariables", f"{place} is {value!r}, and must be {allowed}: correct the variable components")


def frozen_components(value: object) -> dict:
    """The variable `components`, checked: {name: {"version": ..., "digests": {arch: sha256}, "field": ...}}, of which the last is
    empty where no field of the cluster's spec names the version."""
    if not isinstance(value, dict):
        raise invalid("components", value, "{NAME: {version: VERSION, digests: {ARCH: SHA256}}}")
    frozen = {}
    for name, entry in value.items():
        place = f"components[{name!r}]"
        if not isinstance(entry, dict) or set(entry) - FIELDS:
            raise invalid(place, entry, "{version: VERSION, digests: {ARCH: SHA256}}")
        version, digests, field = entry.get("version"), entry.get("digests", {}), entry.get("field", "")
        if not isinstance(field, str):
            raise invalid(f"{place}.field", field, "a field of the cluster's spec as text")
        if not isinstance(version, str) or not version:
            raise invalid(f"{place}.version", version, "a version as text")
        if not isinstance(digests, dict):
            raise invalid(f"{place}.digests", digests, "{ARCH: SHA256}")
        for arch, digest in digests.items():
            if not isinstance(digest, str) or not SHA256.fullmatch(digest):
                raise invalid(f"{place}.digests[{arch!r}]", digest, "a SHA-256 of 64 hexadecimal digits")
        lower = {arch: digest.lower() for arch, digest in digests.items()}
        frozen[name] = {"version": version, "digests": lower, "field": field}
    return frozen


def known_as(artifact: dict, frozen: str) -> dict:
    """The artifact as its cluster knows it. An image that came from its registry is known by the digest of its manifest; the archive
    of a bundle that has the same manifest is the same image, and is not another component for coming another way."""
    same = frozen and artifact["kind"] == "image" and artifact.get("manifest", "").lower() == f"sha256:{frozen}"
    return {**artifact, "identity": frozen} if same else artifact


def identity(artifact: dict) -> str:
    """The digest by which the artifact is known: that of its file, or the one that C(known_as) found."""
    return (artifact.get("identity") or artifact["sha256"]).lower()


def report(artifacts: list) -> dict:
    """What a module tells of the artifacts that it looks after."""
    return listed((artifact["name"], artifact["version"], identity(artifact)) for artifact in artifacts)


def installed() -> dict:
    """What this machine remembers of what was installed on it; of several tags of an image, the newest."""
    newest: dict = {}
    for key, record in membership.read(membership.ARTIFACTS).items():
        if not isinstance(record, dict) or record.get("other") or not isinstance(record.get("sha256"), str):
            continue
        name, version = key, record.get("version")
        if key.startswith(membership.IMAGE):
            name, _colon, version = key[len(membership.IMAGE) :].rpartition(":")
        if not name or not isinstance(version, str) or not version:
            continue
        if name not in newest or rank(version) > rank(newest[name][0]):
            newest[name] = (version, record["sha256"])
    return listed((name, version, digest) for name, (version, digest) in newest.items())


def listed(found) -> dict:
    arch = architecture()
    entries = [
        {"name": name, "version": version, "arch": arch, "sha256": digest.lower()} for name, version, digest in sorted(found)
    ]
    return {"kind": "components", "components": entries}
