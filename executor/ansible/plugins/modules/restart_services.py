#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Restarts what makes a machine a node, or a part of a Karmada control plane."""

from __future__ import annotations

DOCUMENTATION = r"""
module: restart_services
short_description: Restarts containerd and the kubelet, or etcd and the services of a Karmada control plane, and waits until they answer
description:
  - On request the processes of kube-proxy and CoreDNS here are ended, too, and the kubelet starts them anew. After the API was away
    they ask it again after up to a minute only.
  - A service of a Karmada control plane that was stopped on purpose stays so.
  - In check mode it tells whether a restart came to its end here a short while ago.
extends_documentation_fragment:
  - clusterwright.cluster.arguments.karmada_parts
options:
  timeout_seconds:
    description: Until they answer.
    type: int
    default: 120
  watchers:
    description: Whether kube-proxy and CoreDNS are started anew.
    type: bool
    default: false
author:
  - Clusterwright developers
"""

import os
import signal
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, healthz, karmada_parts, processes, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

SOCKET = "/run/containerd/containerd.sock"
# On no disk: after a boot nothing was restarted.
DONE = "/run/clusterwright/restarted"
YOUNG_SECONDS = 900
NODE = ("containerd.service", "kubelet.service")
WATCHERS = ("kube-proxy", "coredns")


def recently() -> bool:
    try:
        return abs(time.time() - os.stat(DONE).st_mtime) < YOUNG_SECONDS
    except OSError:
        return False


def answers(unit: str, timeout: float) -> None:
    """Waits until the service does what it is for."""
    if unit == "containerd.service":
        units.wait_for_socket(SOCKET, unit, timeout)
    elif unit == "kubelet.service":
        said = ""

        def well() -> bool:
            nonlocal said
            good, said = healthz.answer(healthz.KUBELET)
            return good

        wait(well, timeout, "KubeletNotHealthy", lambda: f"the kubelet is not healthy: {said}{units.journal(unit)}")


def end_watchers() -> list:
    """Ends what watches the API in Pods of this machine; their names."""
    pids = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if processes.in_pod(pid)]
    found = {pid: name for pid in pids if (name := text(f"/proc/{pid}/comm").strip()) in WATCHERS}
    for pid in found:
        processes.kill(pid, signal.SIGTERM)
    return sorted(set(found.values()))


def work(call) -> dict:
    present = [unit for unit in NODE if units.exists(unit)] or [unit for unit in ("etcd.service",) if units.exists(unit)]
    parts = karmada_parts.to_run(call.params["parts"])
    if not present and not parts:
        raise StepFailure("ServiceFailed", "this machine has neither kubelet, nor etcd, nor services of a Karmada control plane")
    if call.check_mode:
        for unit in present:
            answers(unit, 10)
        for part in parts:
            karmada_parts.wait_for(part, 10)
        return {"changed": not recently(), "msg": "restarted a short while ago" if recently() else "not restarted lately"}
    files.remove(DONE)
    for unit in present:
        # One that hangs may not hear its stop: systemd kills it after the unit's patience.
        units.systemctl("restart", unit, what=f"restart {unit}", timeout=call.params["timeout_seconds"])
        answers(unit, call.params["timeout_seconds"])
    for part in parts:
        units.systemctl("restart", part["unit"], what=f"restart {part['unit']}", timeout=call.params["timeout_seconds"])
        karmada_parts.wait_for(part, call.params["timeout_seconds"])
    ended = end_watchers() if call.params["watchers"] else []
    os.makedirs(os.path.dirname(DONE), mode=0o700, exist_ok=True)
    files.write(DONE, f"{time.time():.0f}\n")
    return {"changed": True, "msg": f"restarted {', '.join(present + [part['unit'] for part in parts] + ended)}"}
