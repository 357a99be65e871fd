#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Removes what a restore of etcd left on this machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_restore_remove
short_description: Removes the data from before a restore, what was undone or prepared, and the empty directory of held manifests
description:
  - Refuses while the data may be all there is of etcd here, and while manifests are held.
  - In check mode it tells what is there.
extends_documentation_fragment:
  - clusterwright.cluster.arguments.restore
author:
  - Clusterwright developers
"""

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import removal
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.restore_places import HELD, Places


def remains(places: Places, held: str) -> list:
    paths = (places.before, places.undone, places.prepared, held)
    return [path for path in paths if os.path.lexists(path)]


def check_not_needed(places: Places, held: str, found: list) -> None:
    if places.before in found and places.cluster_here() is None:
        raise StepFailure(
            "OldDataNeeded", f"{places.member} holds no data of etcd, and {places.before} does: end or undo the restore first"
        )
    manifests = sorted(os.listdir(held)) if held in found else []
    if manifests:
        raise StepFailure(
            "OldDataNeeded", f"{held} holds {', '.join(manifests)}: release the control plane first (release-control-plane)"
        )


def work(call) -> dict:
    places = Places(call.params["data_directory"], call.params["id"])
    held = f"{HELD}/{places.id}"
    found = remains(places, held)
    if call.check_mode:
        return {"changed": bool(found), "msg": f"still there: {', '.join(found)}" if found else "nothing is there"}
    check_not_needed(places, held, found)
    for path in found:
        removal.remove(path)
    left = remains(places, held)
    if left:
        raise StepFailure("OldDataRemains", f"failed to remove {', '.join(left)}: look what is mounted there or works on it")
    if os.path.isdir(HELD) and not os.listdir(HELD):
        os.rmdir(HELD)
    return {"changed": bool(found), "msg": f"removed {', '.join(found)}" if found else "nothing was there"}
