# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""A static Pod that takes the place of another one starts as soon as that has ended.

The kubelet finds its predecessor still there, and looks again 10 to 15 seconds later. Without an API server for so long, the controller
manager and the scheduler beside it lose their Leases and end as well. A kubelet that starts knows of no predecessor."""

from __future__ import annotations

import contextlib
import os
import threading
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import component_process, control_plane, static_pod, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

KUBELET = "kubelet.service"
PAUSE_SECONDS = 0.3
# A kubelet that does not hold it back has started it by then.
PATIENCE_SECONDS = 2.5
# What does not end by itself is killed by the kubelet after 30 s; an API server waits for its watches.
END_SECONDS = 45


class Place:
    """The place of a component's static Pod."""

    def __init__(self, component: str, pids: list) -> None:
        self.path = f"{static_pod.FOLDER}/{component}.yaml"
        self.seen = self.manifest()
        self.former = pids

    def manifest(self) -> tuple | None:
        """Which file it is; none while there is none."""
        try:
            state = os.stat(self.path)
        except FileNotFoundError:
            return None
        return (state.st_ino, state.st_mtime_ns)

    def is_free(self, pids: list) -> bool:
        """Whether another manifest is there, and the process of before has ended, without another one: true once for each manifest.
        `pids` are the component's processes now."""
        now = self.manifest()
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


def start_anew(components: list) -> None:
    """Ends the components' processes, and has the kubelet start them as soon as they have ended: one that has been started lately would wait
    for 10 s to 5 min."""
    former = {pid for name in components for pid in component_process.pids(name)}
    for name in components:
        component_process.end(name)
    wait_until(lambda: not former & {pid for name in components for pid in component_process.pids(name)}, END_SECONDS)
    if not wait_until(lambda: all(component_process.pids(name) for name in components), PATIENCE_SECONDS):
        start_now()


def wait_until(check, seconds: float) -> bool:
    """Whether it came true within so long."""
    deadline = time.monotonic() + seconds
    while not (came := bool(check())) and time.monotonic() < deadline:
        time.sleep(PAUSE_SECONDS)
    return came


@contextlib.contextmanager
def watched(components: list):
    """Whatever replaces manifests of the components meanwhile waits no longer than it must."""
    if not components:
        yield
        return
    running = control_plane.own_processes(components)
    places, over = {component: Place(component, running.get(component, [])) for component in components}, threading.Event()

    def watch() -> None:
        while not over.wait(PAUSE_SECONDS):
            # Without it, all takes longer, and that is all.
            with contextlib.suppress(StepFailure, OSError):
                running = control_plane.own_processes(components)
                if any([place.is_free(running.get(component, [])) for component, place in places.items()]):
                    start_now()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
