# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Whether etcd's members are one cluster that works, and hold the same."""

from __future__ import annotations

import time

from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import CORRUPT, Etcd, label
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

COMPACTED = "revision has been compacted"


def listed(values: dict) -> str:
    return ", ".join(f"{endpoint}: {value}" for endpoint, value in sorted(values.items()))


class Proof:
    """What must be so of a cluster: its ID, its members, and what they hold."""

    def __init__(self, etcd: Etcd, members: list, cluster: int, revision: int | None = None, same: bool = True) -> None:
        """`etcd` reaches all members, and `members` names them. `same`: they must hold the same, up to the same revision, and have no
        alarm."""
        self.etcd = etcd
        self.members = members
        self.cluster = cluster
        self.revision = revision
        self.same = same

    def problem(self) -> StepFailure | None:
        """The first thing that is not so."""
        if not (self.etcd.healthy() if self.same else all(self.etcd.serves(endpoint) for endpoint in self.etcd.endpoints)):
            return StepFailure("EtcdUnhealthy", f"etcd is not healthy: {self.etcd.said}")
        try:
            return self.foreign() or self.missing() or self.low() or (self.different() if self.same else None)
        except StepFailure as failure:
            return failure

    def foreign(self) -> StepFailure | None:
        """Members of another cluster."""
        ids = self.etcd.cluster_ids()
        others = {endpoint: f"{found:x}" for endpoint, found in ids.items() if found != self.cluster}
        if not others:
            return None
        return StepFailure("EtcdSplit", f"these members are not of cluster {self.cluster:x}: {listed(others)}")

    def missing(self) -> StepFailure | None:
        """Members that do not vote, or are not known."""
        voters = {url for member in self.etcd.members() if not member.get("isLearner") for url in member["peerURLs"]}
        lacking = [label(member) for member in self.members if member["peer_url"] not in voters]
        return StepFailure("EtcdUnhealthy", f"no voting members of etcd: {', '.join(lacking)}") if lacking else None

    def low(self) -> StepFailure | None:
        """A revision below the one that is wanted."""
        if self.revision is None:
            return None
        found = min(status["header"]["revision"] for status in self.etcd.statuses().values())
        if found >= self.revision:
            return None
        return StepFailure("EtcdNotRestored", f"etcd is at revision {found}, and must be at {self.revision} or above")

    def different(self) -> StepFailure | None:
        """Members that hold something else than the others."""
        if any(alarm.get("alarm") == CORRUPT for alarm in self.etcd.alarms()):
            return StepFailure("EtcdDataDiffers", "etcd has the alarm CORRUPT: members hold different data")
        revisions = {endpoint: status["header"]["revision"] for endpoint, status in self.etcd.statuses().items()}
        try:
            hashes = self.etcd.hashes(min(revisions.values()))
        except StepFailure as failure:
            if COMPACTED not in failure.message:
                raise
            # What one of them has come to, another knows no more, and nobody writes.
            return StepFailure("EtcdDataDiffers", f"members are at different revisions: {listed(revisions)}")
        if len(hashes) == len(self.members) and len(set(hashes.values())) == 1:
            return None
        seen = listed({endpoint: found for endpoint, (found, _compacted) in hashes.items()})
        return StepFailure("EtcdDataDiffers", f"members hold different data, by their hashes: {seen}")

    def wait(self, timeout: float, why=lambda: "") -> None:
        """Returns once all of it is so."""
        deadline = time.monotonic() + timeout
        while problem := self.problem():
            if time.monotonic() > deadline:
                raise StepFailure(problem.reason, f"{problem.message} (waited {timeout:.0f} s){why()}")
            time.sleep(0.5)
