# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""All members of etcd as each says of itself, whether they stand work on one of them, and who leads meanwhile."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import ALARMS, CORRUPT, PATIENCE_SECONDS, Etcd, label
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


def look(etcd: Etcd, entry: dict) -> Member | None:
    """The member of this entry of the list; None where it does not answer, or has no leader."""
    urls = entry.get("clientURLs") or []
    endpoint = next((url for url in urls if any(etcd.works(url) for _try in range(3))), None)
    if endpoint is None:
        etcd.said = etcd.said if urls else "it has never started"
        return None
    return Member(entry, endpoint, etcd.at([endpoint]).status())


def answering(etcd: Etcd) -> list:
    """Those members that answer and have a leader. Fails with EtcdUnhealthy where no majority agrees on the members."""
    return [member for member in (look(etcd, entry) for entry in etcd.members()) if member]


def find(etcd: Etcd) -> list:
    """All members, those that follow first. Fails with EtcdUnhealthy where one of them does not answer, or no majority agrees."""
    found = []
    for entry in etcd.members():
        member = look(etcd, entry)
        if member is None:
            raise StepFailure("EtcdUnhealthy", f"member {label(entry)} is not healthy: {etcd.said}: repair or remove it first")
        found.append(member)
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


def late(members: list) -> list:
    """Those that are far behind the one that has applied most."""
    most = max((member.applied for member in members), default=0)
    return [member for member in members if most - member.applied > BEHIND]


def behind(members: list) -> str:
    """Names of those that are far behind the one that has applied most."""
    return ", ".join(member.name for member in late(members))


def has_caught_up(etcd: Etcd) -> bool:
    """Whether the one member that etcd is reached through is healthy, and not far behind those of the others that are."""
    own, members = etcd.list()[1], answering(etcd)
    return any(member.id == own for member in members) and all(member.id != own for member in late(members))


def hand_over(etcd: Etcd, members: list, timeout: float) -> str | None:
    """Lets the one of the members that has applied most lead in place of the one that does, and returns its name; None where none
    of them leads, or there is no other voter. Fails with EtcdUnhealthy when the leader stays."""
    leader = next((member for member in members if member.leads), None)
    heirs = [member for member in members if not member.leads and not member.is_learner]
    heir = max(heirs, key=lambda member: member.applied, default=None)
    if leader is None or heir is None:
        return None
    etcd.at([leader.endpoint]).command("move-leader", f"{heir.id:x}")

    def follows() -> bool:
        """All of them say so: whoever asks right afterwards finds one leader."""
        leaders = {etcd.at([member.endpoint]).status().get("leader", 0) for member in members}
        return len(leaders) == 1 and not leaders & {0, leader.id}

    wait(follows, timeout, "EtcdUnhealthy", lambda: f"{leader.name} still leads etcd")
    return heir.name


def prepare_stop(etcd: Etcd, timeout: float) -> None:
    """Makes etcd ready for a stop of the one member that it is reached through: the others are a majority without it and not far
    behind, and one of them leads. Waits that long for it, and fails with EtcdUnhealthy. Of two members no majority is left, whichever
    is stopped: there the other one is healthy. One that is alone, and a learner, may be stopped at any time."""
    _cluster, own, entries = etcd.list()
    voters = [entry for entry in entries if not entry.get("isLearner")]
    this = next((label(entry) for entry in voters if entry["ID"] == own), None)
    if this is None or len(voters) == 1:
        return
    others = len(voters) - 1
    needed = min(len(voters) // 2 + 1, others)
    lacking: list = []

    def ready() -> list | None:
        nonlocal lacking
        members = answering(etcd)
        good = {member.id for member in members} - {member.id for member in late(members)}
        lacking = [label(entry) for entry in voters if entry["ID"] not in good | {own}]
        return members if others - len(lacking) >= needed else None

    members = wait(
        ready,
        timeout,
        "EtcdUnhealthy",
        lambda: f"etcd would lose its majority while member {this} is stopped: of the {others} others {needed} must be healthy and not"
        f" far behind (not: {', '.join(lacking)}): repair these first",
        0.5,
    )
    if any(member.id == own and member.leads for member in members):
        hand_over(etcd, members, PATIENCE_SECONDS)
