# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Compares what etcd's members hold, by the hashes of all keys at one revision."""

from __future__ import annotations

import time

from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import Etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

# What passes by itself: API servers compact every five minutes, and a member may be a moment behind.
PASSING = ("revision has been compacted", "is a future revision")
TRIES = 5
# No other try begins after this.
PATIENCE_SECONDS = 120


def compare(etcd: Etcd) -> dict | None:
    """The `revision` and the `hashes` by endpoint, of all endpoints at one revision that all of them have; None when there is no such
    revision for now, since they are compacted or behind."""
    began = time.monotonic()
    for number in range(TRIES):
        if time.monotonic() - began > PATIENCE_SECONDS:
            break
        time.sleep(number)
        revision = min(status["header"]["revision"] for status in etcd.statuses().values())
        try:
            hashes = etcd.hashes(revision)
        except StepFailure as failure:
            if any(said in failure.message for said in PASSING):
                continue
            raise
        # A hash leaves out what was compacted: only those with the same history can be compared.
        if len(hashes) == len(etcd.endpoints) and len({compacted for _hash, compacted in hashes.values()}) == 1:
            return {"revision": revision, "hashes": {endpoint: found for endpoint, (found, _compacted) in hashes.items()}}
    return None
