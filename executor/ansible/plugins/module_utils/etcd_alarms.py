# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Alarms that restored data of etcd brings along: they are of members of the cluster that was backed up, and of none that there is."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import Etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


def take_back(etcd: Etcd) -> bool:
    """Takes them back; True where there were any. What is so of the present members they find themselves: one whose database is full
    has the alarm again with its next write. An alarm of one of these stays, and all others with it: etcd takes back all or none."""
    members = {member["ID"] for member in etcd.members()}
    of = [alarm.get("memberID", 0) for alarm in etcd.alarms()]
    if not of or any(member in members or member == 0 for member in of):
        return False
    etcd.command("alarm", "disarm")
    return True


def are_taken_back(local: Etcd, endpoint: str) -> bool:
    """Whether this machine's member serves, and nothing of that kind is left. A member that has just begun may have no others yet."""
    if not local.serves(endpoint):
        return False
    try:
        take_back(local)
    except StepFailure:
        return False
    return True
