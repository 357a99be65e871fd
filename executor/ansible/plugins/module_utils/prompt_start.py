# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""A static Pod that takes the place of another one starts as soon as that has ended.

The kubelet finds its predecessor still there, and looks again 10 to 15 seconds later. Without an API server for so long, the controller
manager and the scheduler beside it lose their Leases and end as well. A kubelet that starts knows of no predecessor."""

from __future__ import annotations

import contextlib
import os
import threading

from ansible_collections.clusterwright.cluster.plugins.module_utils import component_process, static_pod, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

KUBELET = "kubelet.service"
PAUSE_SECONDS = 0.3


class Place:
    """The place of a component's static Pod."""

    def __init__(self, component: str) -> None:
        self.component = component
        self.path = f"{static_pod.FOLDER}/{component}.yaml"
        self.seen = self.manifest()
        self.former = component_process.pids(component)

    def manifest(self) -> tuple | None:
        """Which file it is; none while there is none."""
        try:
            state = os.stat(self.path)
        except FileNotFoundError:
            return None
        return (state.st_ino, state.st_mtime_ns)

    def is_free(self) -> bool:
        """Whether another manifest is there, and the process of before has ended, without another one: true once for each manifest."""
        now, pids = self.manifest(), component_process.pids(self.component)
        if now in (None, self.seen):
            self.former = pids
            return False
        if set(pids) & set(self.former):
            return False
        self.seen, self.former = now, pids
        return not pids


def start_now() -> None:
    """Has the kubelet start what it holds back."""
    units.systemctl("restart", KUBELET, what=f"restart {KUBELET}")


@contextlib.contextmanager
def watched(components: list):
    """Whatever replaces manifests of the components meanwhile waits no longer than it must."""
    places, over = [Place(component) for component in components], threading.Event()

    def watch() -> None:
        while not over.wait(PAUSE_SECONDS):
            # Without it, all takes longer, and that is all.
            with contextlib.suppress(StepFailure, OSError):
                if any([place.is_free() for place in places]):
                    start_now()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
