# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Versions: which is newer, and which of a component is meant."""

from __future__ import annotations

import re
from typing import NamedTuple

from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

KUBERNETES = re.compile(r"v?([0-9]+\.[0-9]+)(\..+)?")


def rank(version: str) -> tuple:
    """Orders versions: numbers by value, and a release after its own pre-releases."""
    core, _dash, pre = version.lstrip("v").partition("-")
    numbers = tuple(int(part) for part in re.findall(r"\d+", core))
    return numbers, not pre, pre


def same(one: str, other: str) -> bool:
    return one.lstrip("v") == other.lstrip("v")


def minor(kube_version: str) -> str:
    """1.35 of 1.35.4."""
    found = KUBERNETES.fullmatch(kube_version)
    if not found:
        raise StepFailure(
            "InvalidVariables", f"kube_version is {kube_version!r}, and must be a version of Kubernetes, such as 1.35.4"
        )
    return found.group(1)


class Meant(NamedTuple):
    """The version that is meant (none: the newest), and who says so, for messages."""

    version: str | None
    by: str = ""


class Versions:
    """Which version of each component is meant where nobody asks for one: the frozen one, else that of the bundle's table for this
    minor of Kubernetes, else the newest."""

    def __init__(self, frozen: dict, table: dict, kube_version: str) -> None:
        self._frozen = frozen
        self._minor = minor(kube_version)
        self._table = table.get(self._minor, {})

    def meant(self, name: str, asked: str | None) -> Meant:
        if asked:
            return Meant(asked)
        if name in self._frozen:
            return Meant(self._frozen[name]["version"], self._frozen[name]["field"] or "frozen for this cluster")
        if name in self._table:
            return Meant(self._table[name], f"in its table for Kubernetes {self._minor}")
        return Meant(None)

    def named(self) -> list:
        """(field, component, version) of each that a field of the cluster's spec names."""
        return [(entry["field"], name, entry["version"]) for name, entry in self._frozen.items() if entry["field"]]

    def digest(self, name: str, version: str, arch: str) -> str:
        """The digest that the component must have in this version; empty where none is frozen."""
        frozen = self._frozen.get(name)
        return frozen["digests"].get(arch, "") if frozen and same(frozen["version"], version) else ""
