#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Makes this machine a member of the etcd cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_member
short_description: An etcd member as a systemd unit, new with the others or added to a cluster that runs
description:
  - Writes the unit's files and starts it. The lines about the initial cluster are written only while the member has no data.
  - With C(state=existing) and no data, the member is first added as a learner through the others, and promoted once it caught up.
  - Ends when the member is healthy, which needs a majority.
options:
  name:
    description: Name of this member, which never changes.
    type: str
    required: true
  members:
    description: All members, with name, peer_url, client_url.
    type: list
    elements: dict
    required: true
  state:
    description: Whether a cluster is started or exists.
    type: str
    choices: [new, existing]
    default: new
  token:
    description: Token of the initial cluster.
    type: str
    required: true
  data_directory:
    description: Data of the member.
    type: path
    default: /var/lib/etcd
  pki_directory:
    description: Holds ca.crt and healthcheck-client.crt and .key.
    type: path
    required: true
  files:
    description: Files to write first.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Where.
        type: path
        required: true
      content:
        description: What.
        type: str
        required: true
      mode:
        description: Octal mode.
        type: str
        default: "0644"
  secrets:
    description: Like files, for content that must not show anywhere.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Where.
        type: path
        required: true
      content:
        description: What.
        type: str
        required: true
      mode:
        description: Octal mode.
        type: str
        default: "0600"
  restart:
    description: etcd's program changed.
    type: bool
    default: false
  timeout_seconds:
    description: Until the member is healthy.
    type: int
    default: 120
author:
  - Clusterwright developers
"""

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import Etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

UNIT = "etcd.service"
INITIAL = "/etc/etcd/initial.env"


def initial_cluster(params: dict, others: Etcd) -> str:
    """The initial cluster as etcd wants it: all members when new, and those there are plus this one when it is added."""
    if params["state"] == "new":
        pairs = [f"{member['name']}={member['peer_url']}" for member in params["members"]]
    else:
        pairs = others.add_learner(params["name"], own(params)["peer_url"])
    return (
        f"ETCD_INITIAL_CLUSTER={','.join(pairs)}\n"
        f"ETCD_INITIAL_CLUSTER_STATE={params['state']}\n"
        f"ETCD_INITIAL_CLUSTER_TOKEN={params['token']}\n"
    )


def own(params: dict) -> dict:
    for member in params["members"]:
        if member["name"] == params["name"]:
            return member
    raise StepFailure("InvalidVariables", f"etcd_members has no member {params['name']}")


def work(call) -> dict:
    params, check = call.params, call.check_mode
    local = Etcd(params["pki_directory"], ["https://127.0.0.1:2379"])
    others = Etcd(
        params["pki_directory"],
        [member["client_url"] for member in params["members"] if member["name"] != params["name"]],
    )
    own(params)
    changed = files.write_all(params["files"], check) + files.write_all(params["secrets"], check, files.SECRET)
    fresh = not os.path.isdir(os.path.join(params["data_directory"], "member"))
    if fresh and not check:
        # 0700 is what etcd itself insists on; the directory may be a mount point.
        os.makedirs(params["data_directory"], mode=0o700, exist_ok=True)
        os.chmod(params["data_directory"], 0o700)
        if files.write(INITIAL, initial_cluster(params, others), 0o600):
            changed.append(INITIAL)
    # Not waiting for systemd: a new cluster's members become ready together.
    restart = params["restart"] or (bool(changed) and not fresh)
    acted = units.ensure(UNIT, restart, check=check, block=False)
    if not check:
        wait(
            local.healthy,
            params["timeout_seconds"],
            "EtcdUnhealthy",
            lambda: f"etcd member {params['name']} is not healthy: {local.said}{units.journal(UNIT)}",
        )
        # The only member is no learner, and has no other to ask.
        if params["state"] == "existing" and len(params["members"]) > 1:
            acted = others.promote(params["name"], params["timeout_seconds"]) or acted
    return {"changed": bool(changed) or acted, "msg": f"member {params['name']} is healthy"}
