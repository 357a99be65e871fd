#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Has the Pods of this machine read the cluster's authorities anew."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pods_restart
short_description: Starts the containers anew that have the cluster's authorities mounted, and began before those that ca.crt has now
description:
  - Waits until every Pod here has all certificates of this machine's ca.crt mounted; the kubelet writes them about a minute after the
    controller-manager has published them.
  - Then the containers that began before are asked to end, one Pod after the other, and the kubelet starts them anew, in the same Pod.
    Each Pod that was Ready is waited for.
  - Static Pods are left alone, and Pods whose containers are not always started anew, since one that ends well would count as done.
    They are named.
options:
  mount_seconds:
    description: Until all Pods have them mounted.
    type: int
    default: 240
  ready_seconds:
    description: Until a Pod is Ready again.
    type: int
    default: 300
extends_documentation_fragment:
  - clusterwright.cluster.arguments.node
author:
  - Clusterwright developers
"""

import signal
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, authority_mounts, component_process, processes
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

PAUSE_SECONDS = 1
# Of a Pod that names none, as Kubernetes has it.
GRACE_SECONDS = 30
KILL_SECONDS = 30


class Node:
    """The Pods of this machine."""

    def __init__(self, params: dict) -> None:
        self.params = params
        self.client = Api(api.KUBELET)

    def pods(self) -> list:
        try:
            return authority_mounts.pods(self.client, self.params["node_name"])
        except (OSError, api.Refused) as error:
            raise StepFailure("ApiserverNotReady", f"failed to ask for the Pods of Node {self.params['node_name']}: {error}") from error

    def same(self, pod):
        """The Pod as it is now; none once it is gone."""
        return next((other for other in self.pods() if other.uid == pod.uid), None)

    def wait_for_mounts(self) -> None:
        lacking: list = []

        def all_have() -> bool:
            lacking[:] = [pod.name for pod in self.pods() if pod.lacks()]
            return not lacking

        wait(
            all_have,
            self.params["mount_seconds"],
            "AuthoritiesNotMounted",
            lambda: f"Pods do not have the cluster's authorities mounted yet: {', '.join(lacking)}: look at the kubelet and at"
            " ConfigMap kube-root-ca.crt of their namespaces",
            PAUSE_SECONDS,
        )
        authority_mounts.note(time.time())

    def restart(self, pod) -> list:
        """Starts the Pod's outdated containers anew, and waits until it is Ready as it was; their names."""
        outdated = pod.outdated()
        former = {container.pid for container in outdated}
        grace = pod.spec.get("terminationGracePeriodSeconds", GRACE_SECONDS)
        for container in outdated:
            end(container.pid, grace)
        last: list = [""]

        def is_back() -> bool:
            now = self.same(pod)
            if now is None or not pod.is_ready:
                return True
            # What the API says may be from before.
            names = {container.name for container in now.containers() if container.pid not in former}
            missing = [container.name for container in outdated if container.name not in names]
            last[0] = f"container {', '.join(missing)} does not run" if missing else "it is not Ready"
            return not missing and now.is_ready

        wait(
            is_back,
            self.params["ready_seconds"],
            "PodsNotRestarted",
            lambda: f"Pod {pod.name} has not come back since its containers were started anew: {last[0]}: look at its log",
            PAUSE_SECONDS,
        )
        return [container.name for container in outdated]


def end(pid: int, grace: float) -> None:
    """Asks the container's first process to end, and kills it when it has not in time."""
    began = component_process.began(pid)
    deadline = time.monotonic() + grace
    processes.kill(pid, signal.SIGTERM)
    while is_alive(pid, began):
        if time.monotonic() > deadline + KILL_SECONDS:
            raise StepFailure("PodsNotRestarted", f"process {pid} does not end, not even when it is killed: look at the machine's kernel log")
        if time.monotonic() > deadline:
            processes.kill(pid)
        time.sleep(0.1)


def is_alive(pid: int, began: float | None) -> bool:
    """Whether it is still that process."""
    now = component_process.began(pid) if processes.parent(pid) else None
    return now is not None and began is not None and abs(now - began) < 1


def work(call) -> dict:
    node = Node(call.params)
    if not call.check_mode:
        node.wait_for_mounts()
    pods = node.pods()
    left = [pod.name for pod in pods if pod.is_left_alone and pod.outdated()]
    due = [pod for pod in pods if not pod.is_left_alone and (pod.outdated() or pod.lacks())]
    said = f"; left alone: {', '.join(left)}" if left else ""
    if call.check_mode:
        names = ", ".join(pod.name for pod in due)
        return {"changed": bool(due), "msg": (f"not started anew: {names}" if due else "all have read the authorities") + said}
    done = [f"{pod.name} ({', '.join(names)})" for pod in due if (names := node.restart(pod))]
    return {"changed": bool(done), "msg": (f"started anew: {', '.join(done)}" if done else "nothing was due") + said}
