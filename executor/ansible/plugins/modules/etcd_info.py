#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Reports the health of etcd's members as one machine sees it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_info
short_description: Reports how this machine's member of etcd is, and which others it sees healthy; read-only
description:
  - A member is healthy when it answers and has a leader. One that is not is reported; the task does not fail.
  - Of a member that answers also its version, the size of its database, what of that is in use, its quota, its alarms, and whether it
    leads.
options:
  name:
    description: Host of this machine's member.
    type: str
    required: true
  members:
    description: All members, with host, client_url.
    type: list
    elements: dict
    required: true
  hash_check:
    description: The member that leads compares what all members hold, by the hashes of all keys at one revision.
    type: bool
    default: false
extends_documentation_fragment:
  - clusterwright.cluster.arguments.etcd
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd_hashes
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import LOCAL, Etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


def figures(local: Etcd) -> dict:
    """What the member says of itself; nothing when it does not answer."""
    try:
        status = local.status()
    except StepFailure:
        return {}
    header = status["header"]
    own = header["member_id"]
    report = {
        "memberID": f"{own:x}",
        "version": status["version"],
        "sizeBytes": status["dbSize"],
        "inUseBytes": status["dbSizeInUse"],
        "isLeader": status.get("leader") == own,
        "isLearner": bool(status.get("isLearner")),
        "raftTerm": status.get("raftTerm", 0),
        "appliedIndex": status.get("raftAppliedIndex", 0),
    }
    # etcd before 3.6 does not say it.
    if "dbSizeQuota" in status:
        report["quotaBytes"] = status["dbSizeQuota"]
    try:
        alarms = local.alarms_by_member()
    except StepFailure as failure:
        # They need a majority.
        return {**report, "message": failure.message}
    # An alarm of no member says that some differ, and not which.
    return {**report, "alarms": sorted({*alarms.get(own, []), *alarms.get(0, [])})}


def hash_check(local: Etcd, members: list) -> dict:
    """What came of comparing all members: the revision with the hash of each host, or why they were not compared."""
    hosts = {member["client_url"]: member["host"] for member in members}
    try:
        found = etcd_hashes.compare(local.at(list(hosts)))
    except StepFailure as failure:
        return {"message": failure.message}
    if found is None:
        return {"message": "no revision is known to all members: they are compacted, or behind, again and again"}
    told = [{"host": hosts[endpoint], "hash": value} for endpoint, value in sorted(found["hashes"].items())]
    return {"revision": found["revision"], "members": told}


def work(call) -> dict:
    params = call.params
    local = Etcd(params["pki_directory"], [LOCAL])
    well = local.healthy_soon(LOCAL)
    said = local.said
    report = {"kind": "etcd", "well": well, "wellPeers": [], "sickPeers": [], **figures(local)}
    if not well:
        report["message"] = said
    others = local.at([])
    for member in params["members"]:
        if member["host"] != params["name"]:
            told = "wellPeers" if others.healthy_soon(member["client_url"]) else "sickPeers"
            report[told].append(member["host"])
    if params["hash_check"] and report.get("isLeader"):
        report["hashCheck"] = hash_check(local, params["members"])
    sick = report["sickPeers"] + ([] if well else [params["name"]])
    return {"changed": False, "clusterwright": report, "msg": f"not well: {', '.join(sick)}" if sick else "all are well"}
