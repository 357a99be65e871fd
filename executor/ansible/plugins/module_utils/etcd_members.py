# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""All members of etcd as each says of itself, and whether they stand work on their databases."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import ALARMS, CORRUPT, Etcd, label
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.versions import rank

# Before it, a defragmentation and a snapshot that a member takes from the leader could damage the database between them.
OLDEST = "3.6.5"
# Entries that a member may be behind the leader.
BEHIND = 100
MIB = 1024 * 1024


def mib(size: int) -> str:
    return f"{size / MIB:.0f} MiB"


class Member:
    """A member that answers."""

    def __init__(self, entry: dict, endpoint: str, status: dict) -> None:
        self.name = label(entry)
        self.endpoint = endpoint
        self.id = entry["ID"]
        self.version = status["version"]
        self.size = status["dbSize"]
        self.in_use = status["dbSizeInUse"]
        self.quota = status.get("dbSizeQuota")
        self.revision = status["header"]["revision"]
        self.applied = status.get("raftAppliedIndex", 0)
        self.leads = status.get("leader") == self.id
        self.is_learner = bool(entry.get("isLearner"))

    @property
    def reclaimable(self) -> int:
        return max(self.size - self.in_use, 0)

    @property
    def percent(self) -> float:
        """How much of the database is not in use."""
        return 100 * self.reclaimable / self.size if self.size else 0.0


def find(etcd: Etcd) -> list:
    """All members, those that follow first. Fails with EtcdUnhealthy where one of them does not answer, or no majority agrees."""
    found = []
    for entry in etcd.members():
        urls = entry.get("clientURLs") or []
        endpoint = next((url for url in urls if any(etcd.works(url) for _try in range(3))), None)
        if endpoint is None:
            said = etcd.said if urls else "it has never started"
            raise StepFailure("EtcdUnhealthy", f"member {label(entry)} is not healthy: {said}: repair or remove it first")
        found.append(Member(entry, endpoint, etcd.at([endpoint]).status()))
    return sorted(found, key=lambda member: (member.leads, member.name))


def refusal(etcd: Etcd, members: list) -> StepFailure | None:
    """Why these members' databases are not worked on."""
    corrupt = [name for names in etcd.alarms_by_member().values() for name in names if name == ALARMS[CORRUPT]]
    if corrupt:
        return StepFailure("EtcdCorrupt", "etcd has the alarm CORRUPT: replace the machine of the member that differs first")
    learners = [member.name for member in members if member.is_learner]
    if learners:
        return StepFailure("EtcdUnhealthy", f"{', '.join(learners)} is still a learner: it becomes a voter first")
    old = [f"{member.name} {member.version}" for member in members if rank(member.version) < rank(OLDEST)]
    if old:
        return StepFailure(
            "EtcdTooOld",
            f"members run etcd older than {OLDEST}, which may damage its database when it is defragmented ({', '.join(old)}):"
            " give them a newer one first",
        )
    if sum(member.leads for member in members) != 1:
        return StepFailure("EtcdUnhealthy", "etcd has no leader that all members agree on")
    return None


def behind(members: list) -> str:
    """Names of those that are far behind the one that has applied most."""
    most = max(member.applied for member in members)
    return ", ".join(member.name for member in members if most - member.applied > BEHIND)
