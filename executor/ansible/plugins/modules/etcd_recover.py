#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Makes an etcd that lost its majority work again with one member."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_recover
short_description: This machine's member becomes an etcd of its own, from its own data; all other members are forgotten
description:
  - Refuses with QuorumNotLost while etcd has a majority, seen from this member or from another one.
  - A copy of the data stays in C(before-recovery) beside it, where there is room.
  - A second pass finds the member alone and healthy, and changes nothing.
options:
  name:
    description: Name of this machine's member.
    type: str
    required: true
  others:
    description: Client URLs of the other members that are known.
    type: list
    elements: str
    default: []
  data_directory:
    description: Data of the member.
    type: path
    default: /var/lib/etcd
  apiserver_address:
    description: Address of this machine's API server, which must be ready in the end. Empty - this machine has none.
    type: str
    default: ""
  apiserver_port:
    description: Its port.
    type: int
    default: 6443
  timeout_seconds:
    description: Until the member is healthy, and again until the API server is.
    type: int
    default: 120
extends_documentation_fragment:
  - clusterwright.cluster.arguments.etcd
author:
  - Clusterwright developers
"""

import os
import shutil
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd_data, files, healthz, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import LOCAL, UNCLEAR, WELL, Etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

UNIT = "etcd.service"
# Where a boot loses it: a later start must not forget members again.
DROP_IN = f"/run/systemd/system/{UNIT}.d/force-new-cluster.conf"
DROP_IN_TEXT = "# Written by clusterwright.\n[Service]\nEnvironment=ETCD_FORCE_NEW_CLUSTER=true\n"
COPY = "before-recovery"
LOOKS = 3
LOOK_SECONDS = 2


def alone(local: Etcd) -> bool:
    """Whether this member is healthy and the only one."""
    return local.healthy() and len(local.members()) == 1


def known_here(local: Etcd) -> list:
    """Client URLs of the members that this one remembers; none when it does not run."""
    try:
        members = local.etcdctl("member", "list", "--consistency=s")["members"]
    except StepFailure:
        return []
    return [url for member in members for url in member.get("clientURLs") or []]


def check_quorum_is_lost(params: dict, local: Etcd) -> None:
    """Every member that is known is silent or says that it has no leader, three times, for longer than an election takes."""
    endpoints = sorted({LOCAL, *params["others"], *known_here(local)})
    deadline = time.monotonic() + params["timeout_seconds"]
    sure = 0
    while sure < LOOKS:
        seen = {endpoint: local.look(endpoint) for endpoint in endpoints}
        well = [endpoint for endpoint, how in seen.items() if how == WELL]
        if well:
            raise StepFailure(
                "QuorumNotLost",
                f"etcd has a majority ({', '.join(well)} is healthy): nothing was done; take dead members out one by one (remove-etcd-member)",
            )
        sure = 0 if UNCLEAR in seen.values() else sure + 1
        if time.monotonic() > deadline:
            text = ", ".join(f"{endpoint} is {how}" for endpoint, how in seen.items())
            raise StepFailure("QuorumUnclear", f"nothing was done, since etcd may have a majority: {text}")
        if sure < LOOKS:
            time.sleep(LOOK_SECONDS)


def keep_copy(directory: str) -> str:
    """Copies the data where there is room; returns what to say of it."""
    source, target = os.path.join(directory, "member"), os.path.join(directory, COPY)
    if os.path.isdir(target):
        return f"the copy of an earlier attempt is in {target}"
    size = sum(os.path.getsize(os.path.join(folder, name)) for folder, _folders, names in os.walk(source) for name in names)
    if shutil.disk_usage(directory).free < size + size // 4:
        return "no room for a copy of the data"
    draft = f"{target}.part"
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(source, draft)
    os.rename(draft, target)
    return f"a copy of the data is in {target}"


def wait_for_apiserver(params: dict) -> None:
    """The kubelet starts an API server that kept failing only after minutes; restarted, it does so at once."""
    target = healthz.apiserver(params["apiserver_address"], params["apiserver_port"])
    said = ""

    def ready() -> bool:
        nonlocal said
        well, said = healthz.answer(target)
        return well

    try:
        wait(ready, 10, "ApiserverNotReady", lambda: said)
    except StepFailure:
        units.systemctl("restart", "kubelet.service", what="restart kubelet.service")
        wait(ready, params["timeout_seconds"], "ApiserverNotReady", lambda: f"the API server is not ready: {said}")


def force(params: dict, local: Etcd) -> str:
    """Starts the member once as the only one."""
    units.systemctl("stop", UNIT, what=f"stop {UNIT}")
    said = keep_copy(params["data_directory"])
    files.write(DROP_IN, DROP_IN_TEXT)
    units.reload()
    try:
        attempt("systemctl", "reset-failed", UNIT)
        units.systemctl("start", "--no-block", UNIT, what=f"start {UNIT}")
        wait(
            local.healthy,
            params["timeout_seconds"],
            "EtcdUnhealthy",
            lambda: f"etcd member {params['name']} did not come up from its data: {local.said}{units.journal(UNIT)}",
        )
    finally:
        files.remove(DROP_IN)
        units.reload()
    if not alone(local):
        raise StepFailure("EtcdUnhealthy", f"etcd member {params['name']} is not alone: {[m.get('name') for m in local.members()]}")
    return said


def work(call) -> dict:
    params = call.params
    local = Etcd(params["pki_directory"], [LOCAL])
    if alone(local):
        if not call.check_mode and params["apiserver_address"]:
            wait_for_apiserver(params)
        return {"changed": False, "msg": f"member {params['name']} is healthy and alone"}
    if call.check_mode:
        return {"changed": True, "msg": f"member {params['name']} is not healthy and alone: {local.said}"}
    if etcd_data.identity(params["data_directory"]) is None:
        raise StepFailure("EtcdDataMissing", f"{params['data_directory']} holds no data: choose another member")
    # It tells of the others, and whether one of them leads.
    units.ensure(UNIT, block=False)
    check_quorum_is_lost(params, local)
    said = force(params, local)
    if params["apiserver_address"]:
        wait_for_apiserver(params)
    return {"changed": True, "msg": f"member {params['name']} is an etcd of its own now; {said}"}
