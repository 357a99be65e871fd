#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Gives back what etcd's databases do not use, one member at a time."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_defragment
short_description: Defragments the members of etcd one at a time, by the member of one machine
description:
  - Those that follow come first. The one that leads hands that over and comes last; an etcd of one member stands still meanwhile.
  - Before each, all members are healthy, run etcd 3.6.5 or newer, and are not far behind; otherwise nothing more is done.
  - A member of whose database little is free is left as it is.
  - With C(free_space), an etcd that has the alarm NOSPACE is compacted to its present revision first, every member is defragmented,
    and the alarm is taken back if that helped.
  - In check mode, tells whether something is left to do.
options:
  min_fragmentation_percent:
    description: A member is left as it is while less of its database is free, in percent of its size.
    type: int
    default: 50
  min_reclaim_mib:
    description: A member is left as it is while less of its database is free, in MiB.
    type: int
    default: 100
  free_space:
    description: Also compact, and take back the alarm NOSPACE, where there is one.
    type: bool
    default: false
  timeout_seconds:
    description: Until a member is healthy again after its turn.
    type: int
    default: 120
extends_documentation_fragment:
  - clusterwright.cluster.arguments.etcd
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd_members
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import ALARMS, LOCAL, NO_SPACE, WHOLE_SECONDS, Etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd_members import MIB, mib
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

# A write of nothing: the transaction is refused as any write is where there is no space, and its condition is never met.
NO_WRITE = 'mod("clusterwright.dev/write") < "0"\n\nput clusterwright.dev/write x\n\n\n'
# etcd's file grows ahead of what is written to it, by this much and by half: after a defragmentation so much may be free again.
GROWTH_MIB = 32
GROWTH_PERCENT = 20
# So much of the quota may be in use where the alarm is taken back: with less room it would come again at once.
FULL_PERCENT = 95


def has_no_space(etcd: Etcd) -> bool:
    return any(ALARMS[NO_SPACE] in names for names in etcd.alarms_by_member().values())


def is_worth_it(member, percent: float, reclaim_mib: float) -> bool:
    return member.percent >= percent and member.reclaimable >= reclaim_mib * MIB


class Defragmentation:
    """Works on all members, by the one of this machine."""

    def __init__(self, params: dict) -> None:
        self.params = params
        self.etcd = Etcd(params["pki_directory"], [LOCAL])
        self.done: list = []

    def members(self) -> list:
        """All members; it fails while they do not stand work on one of them."""
        refused: StepFailure | None = None

        def ready():
            nonlocal refused
            try:
                members = etcd_members.find(self.etcd)
            except StepFailure as failure:
                refused = failure
                return None
            behind = etcd_members.behind(members)
            refused = StepFailure("EtcdUnhealthy", f"{behind} is far behind the others") if behind else None
            return None if behind else members

        try:
            members = wait(ready, self.params["timeout_seconds"], "EtcdUnhealthy", lambda: refused.message if refused else "", 0.5)
        except StepFailure as failure:
            so_far = f" (done so far: {', '.join(self.done)})" if self.done else ""
            raise StepFailure(failure.reason, f"{failure.message}{so_far}") from failure
        refusal = etcd_members.refusal(self.etcd, members)
        if refusal:
            raise refusal
        return members

    def defragment(self, name: str) -> None:
        members = self.members()
        member = next(member for member in members if member.name == name)
        if member.leads:
            etcd_members.hand_over(self.etcd, members, self.params["timeout_seconds"])
            self.members()
        self.etcd.at([member.endpoint]).command("defrag", f"--command-timeout={WHOLE_SECONDS}s", timeout=WHOLE_SECONDS + 10)
        after = next(found for found in self.members() if found.name == name)
        self.done.append(f"{name} {mib(member.size)} -> {mib(after.size)}")

    def compact(self, members: list) -> None:
        """Gives up all history, so that what was deleted or overwritten is no more in use."""
        revision = min(member.revision for member in members)
        try:
            patience = f"--command-timeout={WHOLE_SECONDS}s"
            self.etcd.command("compact", str(revision), "--physical", patience, timeout=WHOLE_SECONDS + 10)
        except StepFailure as failure:
            if "has been compacted" not in failure.message:
                raise

    def disarm(self) -> None:
        full = [
            f"{member.name} uses {mib(member.in_use)} of its quota of {mib(member.quota)}"
            for member in self.members()
            if member.quota and member.in_use * 100 > member.quota * FULL_PERCENT
        ]
        if full:
            raise StepFailure(
                "EtcdNoSpace", f"etcd is full with what it holds: {', '.join(full)}: delete objects that nobody needs, then do it again"
            )
        self.etcd.command("alarm", "disarm")

    def check_writes(self) -> None:
        """Fails when etcd refuses writes; it writes nothing."""
        try:
            self.etcd.command("txn", stdin=NO_WRITE)
        except StepFailure as failure:
            reason = "EtcdNoSpace" if "space exceeded" in failure.message else failure.reason
            raise StepFailure(reason, f"etcd accepts no writes: {failure.message}") from failure

    def work(self) -> bool:
        members = self.members()
        frees = self.params["free_space"] and has_no_space(self.etcd)
        if frees:
            self.compact(members)
            members = self.members()
        percent, reclaim = self.params["min_fragmentation_percent"], self.params["min_reclaim_mib"]
        due = [member.name for member in members if frees or is_worth_it(member, percent, reclaim)]
        # The leader may have changed since: whoever leads when its turn comes hands that over.
        for name in due:
            self.defragment(name)
        if frees:
            self.disarm()
            self.check_writes()
        return bool(due)

    def left(self) -> str:
        """What is left to do; it fails where etcd is not as it should be."""
        members = self.members()
        if self.params["free_space"]:
            self.check_writes()
        percent = max(self.params["min_fragmentation_percent"], GROWTH_PERCENT)
        reclaim = max(self.params["min_reclaim_mib"], GROWTH_MIB)
        grown = [member for member in members if is_worth_it(member, percent, reclaim)]
        return ", ".join(f"{member.name}: {mib(member.reclaimable)} of {mib(member.size)} are free" for member in grown)


def work(call) -> dict:
    defragmentation = Defragmentation(call.params)
    if call.check_mode:
        left = defragmentation.left()
        return {"changed": bool(left), "msg": left or "no member has much that is free"}
    changed = defragmentation.work()
    done = ", ".join(defragmentation.done)
    return {"changed": changed, "msg": f"defragmented: {done}" if changed else "no member has much that is free"}
