#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Holds this machine's control plane, so that nobody writes to etcd, and releases it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: control_plane_hold
short_description: Takes the manifests of the control plane's static Pods from the kubelet until they have ended, or gives them back
description:
  - Held, the manifests are in /etc/clusterwright/held/ID. The kubelet ends the Pods, and is started where it does not run. What has
    not ended after 5 s is killed, since an API server with open watches takes all of its grace period, and holds nothing that etcd
    does not.
  - Released, the components are healthy in the end. The kubelet is restarted when they are slow, since it may wait for minutes
    before it starts one that kept failing.
  - An attempt that was cut short between two manifests is taken up.
options:
  id:
    description: The restore's ID, which names the directory.
    type: str
    required: true
  state:
    description: Which of the two.
    type: str
    choices: [held, released]
    required: true
  components:
    description: Of which components.
    type: list
    elements: str
    choices: [kube-apiserver, kube-controller-manager, kube-scheduler]
    required: true
  timeout_seconds:
    description: Until they have ended, or are healthy.
    type: int
    default: 180
extends_documentation_fragment:
  - clusterwright.cluster.arguments.apiserver
author:
  - Clusterwright developers
"""

import os
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import control_plane, moves, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

KUBELET = "kubelet.service"
# After so long the kubelet is taken to wait by itself.
PATIENCE_SECONDS = 30
# Until requests under way are answered.
GRACE_SECONDS = 5
PAUSE_SECONDS = 0.5


def make_directory(directory: str) -> None:
    """For the manifests, which are root's alone."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    os.chmod(directory, 0o700)
    moves.sync(os.path.dirname(directory))


def hold(params: dict, manifests: list) -> dict:
    for manifest in manifests:
        make_directory(os.path.dirname(manifest.held))
    moved = [manifest.component for manifest in manifests if manifest.hold()]
    began = time.monotonic()
    deadline = began + params["timeout_seconds"]
    while left := control_plane.running(params["components"], params["port"]):
        # It may have been stopped, and started one of them again while it had its manifest.
        units.ensure(KUBELET, block=False)
        if time.monotonic() > began + GRACE_SECONDS:
            control_plane.kill(params["components"])
        if time.monotonic() > deadline:
            raise StepFailure(
                "ControlPlaneNotHeld",
                f"still there {params['timeout_seconds']} s after the manifests went: {', '.join(left)}; look at the kubelet,"
                f" or end them by hand{units.journal(KUBELET)}",
            )
        time.sleep(PAUSE_SECONDS)
    return {"changed": bool(moved), "msg": f"held: {', '.join(params['components'])}"}


def release(params: dict, manifests: list) -> dict:
    moved = [manifest.component for manifest in manifests if manifest.release()]
    acted = units.ensure(KUBELET, block=False)
    patience = min(PATIENCE_SECONDS, params["timeout_seconds"])
    if sick_after(params, patience):
        units.systemctl("restart", KUBELET, what=f"restart {KUBELET}")
        if sick := sick_after(params, params["timeout_seconds"]):
            raise StepFailure("ApiserverNotReady", f"not healthy after its release: {'; '.join(sick)}{units.journal(KUBELET)}")
    return {"changed": bool(moved) or acted, "msg": f"healthy: {', '.join(params['components'])}"}


def sick_after(params: dict, timeout: float) -> list:
    """What is not healthy when the time is over; empty as soon as all is."""
    deadline = time.monotonic() + timeout
    while sick := control_plane.unhealthy(params["components"], params["address"], params["port"]):
        if time.monotonic() > deadline:
            return [f"{component}: {said}" for component, said in sick.items()]
        time.sleep(PAUSE_SECONDS)
    return []


def probe(params: dict, manifests: list) -> dict:
    """What is not as it should be."""
    if params["state"] == "held":
        found = [f"{manifest.place} is there" for manifest in manifests if manifest.is_in_place]
        found += control_plane.running(params["components"], params["port"])
    else:
        found = [f"{manifest.held} is there" for manifest in manifests if manifest.is_held]
        found += sick_after(params, params["timeout_seconds"])
    return {"changed": bool(found), "msg": "; ".join(found) or f"{params['state']}: {', '.join(params['components'])}"}


def work(call) -> dict:
    params = call.params
    manifests = control_plane.manifests(params["components"], params["id"])
    if call.check_mode:
        return probe(params, manifests)
    return hold(params, manifests) if params["state"] == "held" else release(params, manifests)
