#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Lets this machine's member of etcd go on with restored data, or again with the data from before."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_restore
short_description: One phase of a restore of etcd, or of undoing it; all machines must be through a phase before the next
description:
  - C(check) refuses what cannot be finished, and touches nothing. C(stop) stops etcd, also for the next boot. C(swap) renames the
    data. C(start) starts etcd, and waits until all members are one cluster that works.
  - A member that is where it should be goes on, and a second pass changes nothing.
  - In check mode, C(start) tells whether all of it is done.
options:
  phase:
    description: Which one.
    type: str
    choices: [check, stop, swap, start]
    required: true
  undo:
    description: The data from before the restore comes back.
    type: bool
    default: false
  name:
    description: Name of this machine's member.
    type: str
    required: true
  members:
    description: All members, with name, peer_url, client_url.
    type: list
    elements: dict
    required: true
  cluster_id:
    description: ID of the restored cluster, hexadecimal. To undo, it may be missing where the record of the staging is there.
    type: str
    default: ""
  sha256:
    description: SHA-256 of the snapshot. Not needed to undo.
    type: str
    default: ""
  timeout_seconds:
    description: Until etcd has stopped, and until all members work.
    type: int
    default: 120
extends_documentation_fragment:
  - clusterwright.cluster.arguments.etcd
  - clusterwright.cluster.arguments.restore
author:
  - Clusterwright developers
"""

import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    etcd_alarms,
    etcd_data,
    etcd_revision,
    membership,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import LOCAL, Etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd_proof import Proof
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd_swap import Restore, Undo
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.restore_places import Places

UNIT = "etcd.service"
STOPPED = ("inactive", "failed", None)


def direction(params: dict, places: Places):
    if params["undo"]:
        return Undo(places, params["cluster_id"])
    if not params["sha256"]:
        raise StepFailure("InvalidVariables", "etcd_restore.sha256 must be given")
    return Restore(places, params["cluster_id"], params["sha256"])


def check(params: dict, places: Places, way) -> dict:
    way.check()
    if way.due():
        way.check_revision(etcd_revision.known(Etcd(params["pki_directory"], [LOCAL]), places.member))
    return {"changed": False, "msg": "the data lies ready" if way.due() else "the data is in its place"}


def at_work(places: Places) -> bool:
    return units.state(UNIT).get("ActiveState") not in STOPPED or etcd_data.in_use(places.member)


def stop(params: dict, places: Places, way) -> dict:
    if not way.due():
        return {"changed": False, "msg": "the data is in its place: etcd goes on"}
    running = at_work(places)
    # Neither may it come back with a boot, with the data from before or with none.
    units.systemctl("disable", "--now", UNIT, what=f"stop {UNIT}", reason="EtcdNotStopped", timeout=params["timeout_seconds"])
    wait(
        lambda: not at_work(places),
        params["timeout_seconds"],
        "EtcdNotStopped",
        lambda: f"etcd has not stopped, or another process has {etcd_data.database(places.member)} open: end it by hand",
    )
    return {"changed": running, "msg": "etcd has stopped"}


def swap(params: dict, places: Places, way) -> dict:
    if not way.due():
        return {"changed": False, "msg": "the data is in its place"}
    way.check()
    if at_work(places):
        raise StepFailure("EtcdNotStopped", f"{UNIT} was started again: nothing was done on this machine; run the step again")
    way.swap()
    if way.due():
        raise StepFailure("EtcdRestoreUnclear", f"{places.member} is not what was put there: look who else works on it")
    return {"changed": True, "msg": f"data of cluster {way.cluster:x} is in its place"}


def proof(params: dict, way) -> Proof:
    reached = Etcd(params["pki_directory"], [member["client_url"] for member in params["members"]])
    # What was there before the restore may be why there was one.
    return Proof(reached, params["members"], way.cluster, way.revision(), same=not params["undo"])


def take_back_alarms(params: dict) -> None:
    """As soon as etcd serves; where it does not, the proof says why."""
    local = Etcd(params["pki_directory"], [LOCAL])
    deadline = time.monotonic() + params["timeout_seconds"]
    while not etcd_alarms.are_taken_back(local, LOCAL) and time.monotonic() < deadline:
        time.sleep(0.5)


def start(params: dict, places: Places, way) -> dict:
    if way.due():
        raise StepFailure("EtcdRestoreUnclear", f"{places.member} does not hold the data that it should: run the step again")
    way.check()
    acted = units.ensure(UNIT, block=False)
    if not params["undo"]:
        take_back_alarms(params)
    proof(params, way).wait(params["timeout_seconds"], lambda: units.journal(UNIT))
    # It votes: from now on its data may be all there is.
    membership.save(membership.ETCD, {"joined": True, "name": params["name"]})
    return {"changed": acted, "msg": f"all members are healthy, of cluster {way.cluster:x}"}


def probe(params: dict, way) -> dict:
    """Whether all of it is done."""
    if way.due():
        return {"changed": True, "msg": "this machine's member does not have the data that it should"}
    way.check()
    if units.ensure(UNIT, check=True):
        return {"changed": True, "msg": f"{UNIT} does not run, or not after a boot"}
    proof(params, way).wait(params["timeout_seconds"])
    return {"changed": False, "msg": f"all members are healthy, of cluster {way.cluster:x}"}


PHASES = {"check": check, "stop": stop, "swap": swap, "start": start}


def work(call) -> dict:
    params = call.params
    places = Places(params["data_directory"], params["id"])
    way = direction(params, places)
    if call.check_mode:
        return probe(params, way)
    return PHASES[params["phase"]](params, places, way)
