# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What runs in Kubernetes' containers on this machine, and how it is ended. No container is deleted."""

from __future__ import annotations

import signal
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import processes


def running() -> dict:
    """Pids by what they are, of the cluster's programs and of what runs in its Pods."""
    return {name: pids for name, pids in processes.find().items() if name != processes.SHIM}


def shims() -> list:
    """Pids of the shims of Kubernetes' containers; those of other users of the same containerd are not ours."""
    return [pid for pid in processes.find().get(processes.SHIM, []) if processes.of_kubernetes(pid)]


def end(grace: float = 10) -> None:
    """Asks everything in Kubernetes' containers to end, and kills what has not after `grace` seconds. The kubelet must be
    stopped before, or it starts them again."""
    deadline = time.monotonic() + grace
    asked: set = set()
    while True:
        parents = shims()
        left = set(processes.descendants(*parents)).union(*running().values())
        kills = time.monotonic() > deadline
        if not left or kills:
            for pid in [*left, *parents]:
                processes.kill(pid)
        if not left or time.monotonic() > deadline + grace:
            return
        for pid in () if kills else left - asked:
            processes.kill(pid, signal.SIGTERM)
        asked |= left
        time.sleep(0.1)
