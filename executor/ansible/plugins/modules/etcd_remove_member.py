#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Takes a member out of etcd, by one that stays."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_remove_member
short_description: Removes a member from the etcd cluster of this machine, and needs nothing from its own machine
description:
  - There being no such member is success. One that leads hands that over first.
  - Refuses with QuorumRisk when the voters that stay would have no majority of healthy ones.
options:
  name:
    description: Name of the member that leaves.
    type: str
    required: true
  peer_urls:
    description: Its peer URLs, as far as they are known; a member that never started has no name.
    type: list
    elements: str
    default: []
  timeout_seconds:
    description: Until it is gone.
    type: int
    default: 60
extends_documentation_fragment:
  - clusterwright.cluster.arguments.etcd
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd_members
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import LOCAL, Etcd, label
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


def find(params: dict, members: list) -> dict | None:
    """The member that leaves, or None."""
    for member in members:
        if member.get("name") == params["name"]:
            return member
    for member in members:
        if not member.get("name") and set(params["peer_urls"]).intersection(member["peerURLs"]):
            return member
    return None


def hand_over(params: dict, local: Etcd, leaving: dict) -> bool:
    """Lets another one lead before the leader goes: the next election would wait for its silence. Only a courtesy."""
    try:
        if local.leader() != leaving["ID"]:
            return False
        return etcd_members.hand_over(local, etcd_members.answering(local), params["timeout_seconds"]) is not None
    except StepFailure:
        return False


def work(call) -> dict:
    params = call.params
    local = Etcd(params["pki_directory"], [LOCAL])
    if not local.alive_soon().endpoints:
        raise StepFailure("EtcdUnhealthy", f"the member of this machine is not healthy: {local.said}: ask another one")
    _cluster, this, members = local.list()
    leaving = find(params, members)
    if leaving is None:
        return {"changed": False, "msg": f"etcd has no member {params['name']}"}
    if leaving["ID"] == this:
        raise StepFailure("InvalidVariables", f"{params['name']} is this machine's own member: run the step on one that stays")
    if call.check_mode:
        return {"changed": True, "msg": f"etcd has a member {params['name']}"}
    local.check_quorum_without(leaving)
    handed = hand_over(params, local, leaving)
    local.remove(leaving)

    def gone() -> bool:
        return local.healthy() and all(member["ID"] != leaving["ID"] for member in local.members())

    wait(gone, params["timeout_seconds"], "EtcdUnhealthy", lambda: f"etcd did not settle without {label(leaving)}: {local.said}")
    return {"changed": True, "msg": f"removed {label(leaving)}{', which led until then' if handed else ''}"}
