# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The services of a Karmada control plane that are to run on this machine: which they are, and that they answer."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils import karmada, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait


def to_run(parts: list) -> list:
    """Those of the parts that are here and come back with a boot: one that was stopped on purpose does not."""
    return [part for part in parts if units.exists(part["unit"]) and units.state(part["unit"]).get("UnitFileState") == "enabled"]


def answer(part: dict) -> tuple:
    """(well, what it said) of a part whose unit is there."""
    state = units.state(part["unit"]).get("ActiveState")
    if state != "active":
        return False, f"{part['unit']} is {state}"
    return karmada.answer(part["health"]) if part["health"] else (True, "")


def wait_for(part: dict, timeout: float) -> None:
    """Waits until the part is well; ServiceFailed says what it said last."""
    said = ""

    def well() -> bool:
        nonlocal said
        good, said = answer(part)
        return good

    wait(well, timeout, "ServiceFailed", lambda: f"{part['name']} does not work: {said}{units.journal(part['unit'])}")
