#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Reports the health of etcd's members as one machine sees it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_info
short_description: Reports whether this machine's member of etcd is healthy, and which others it sees healthy; read-only
description:
  - A member is healthy when it answers and has a leader. One that is not is reported; the task does not fail.
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
extends_documentation_fragment:
  - clusterwright.cluster.arguments.etcd
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import LOCAL, Etcd


def work(call) -> dict:
    params = call.params
    local = Etcd(params["pki_directory"], [LOCAL])
    well = local.healthy_soon(LOCAL)
    report = {"kind": "etcd", "well": well, "wellPeers": [], "sickPeers": []}
    if well:
        report["memberID"] = local.own_id()
    else:
        report["message"] = local.said
    others = local.at([])
    for member in params["members"]:
        if member["host"] != params["name"]:
            told = "wellPeers" if others.healthy_soon(member["client_url"]) else "sickPeers"
            report[told].append(member["host"])
    sick = report["sickPeers"] + ([] if well else [params["name"]])
    return {"changed": False, "clusterwright": report, "msg": f"not well: {', '.join(sick)}" if sick else "all are well"}
