#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Reports whether this machine's member of etcd can be backed up from."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_backup_candidate
short_description: Reports what decides whether a backup is read from this machine's member of etcd; read-only
description:
  - A member that does not answer is reported; the task does not fail, since another one may be read.
extends_documentation_fragment:
  - clusterwright.cluster.arguments.etcd
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import CORRUPT, LOCAL, SILENT, Etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


def seen(member: Etcd) -> dict:
    """What the member shows of itself. The linearizable read comes first: what is applied then, is all that was committed before."""
    if member.look(LOCAL) == SILENT:
        return {"answers": False, "message": member.said}
    try:
        member.read()
        status = member.status()
        alarms = member.alarms()
    except StepFailure as failure:
        return {"answers": False, "message": failure.message}
    header = status["header"]
    own = header["member_id"]
    # An alarm of no member says that some differ, and not which.
    return {
        "answers": True,
        "memberID": f"{own:x}",
        "clusterID": f"{header['cluster_id']:x}",
        "isLeader": status.get("leader") == own,
        "isLearner": bool(status.get("isLearner")),
        "appliedIndex": status.get("raftAppliedIndex", 0),
        "raftTerm": status.get("raftTerm", 0),
        "isCorrupt": any(alarm.get("memberID", 0) in (own, 0) and alarm.get("alarm") == CORRUPT for alarm in alarms),
    }


def work(call) -> dict:
    report = seen(Etcd(call.params["pki_directory"], [LOCAL]))
    message = "the member answers" if report["answers"] else f"the member does not answer: {report['message']}"
    return {"changed": False, "clusterwright": {"kind": "backup-candidate", **report}, "msg": message}
