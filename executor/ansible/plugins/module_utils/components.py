# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The components of a cluster that are frozen when a run begins."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle_index import SHA256
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

FIELDS = {"version", "digests"}


def invalid(place: str, value: object, allowed: str) -> StepFailure:
    return StepFailure("InvalidVariables", f"{place} is {value!r}, and must be {allowed}: correct the variable components")


def frozen_components(value: object) -> dict:
    """The variable `components`, checked: {name: {"version": ..., "digests": {arch: sha256}}}."""
    if not isinstance(value, dict):
        raise invalid("components", value, "{NAME: {version: VERSION, digests: {ARCH: SHA256}}}")
    frozen = {}
    for name, entry in value.items():
        place = f"components[{name!r}]"
        if not isinstance(entry, dict) or set(entry) - FIELDS:
            raise invalid(place, entry, "{version: VERSION, digests: {ARCH: SHA256}}")
        version, digests = entry.get("version"), entry.get("digests", {})
        if not isinstance(version, str) or not version:
            raise invalid(f"{place}.version", version, "a version as text")
        if not isinstance(digests, dict):
            raise invalid(f"{place}.digests", digests, "{ARCH: SHA256}")
        for arch, digest in digests.items():
            if not isinstance(digest, str) or not SHA256.fullmatch(digest):
                raise invalid(f"{place}.digests[{arch!r}]", digest, "a SHA-256 of 64 hexadecimal digits")
        frozen[name] = {"version": version, "digests": {arch: digest.lower() for arch, digest in digests.items()}}
    return frozen
