# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The static Pods of this machine's control plane: where their manifests are, also while they are held, and what runs of them."""

from __future__ import annotations

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    healthz,
    listeners,
    membership,
    moves,
    processes,
    static_pod,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.restore_places import HELD, checked_id

APISERVER = "kube-apiserver"
COMPONENTS = (APISERVER, "kube-controller-manager", "kube-scheduler")


class Manifest:
    """The manifest of one component, which is in one of two places."""

    def __init__(self, component: str, restore: object) -> None:
        self.component = component
        self.place = f"{static_pod.FOLDER}/{component}.yaml"
        self.held = f"{HELD}/{checked_id(restore)}/{component}.yaml"

    @property
    def is_in_place(self) -> bool:
        return os.path.lexists(self.place)

    @property
    def is_held(self) -> bool:
        return os.path.lexists(self.held)

    def hold(self) -> bool:
        """Takes it from the kubelet. True when the kubelet had it."""
        if not self.is_in_place:
            return False
        moves.file(self.place, self.held)
        return True

    def release(self) -> bool:
        """Gives it back. What is in its place already stays: a move that was cut short, or somebody wrote it. True when it acted."""
        if not self.is_held:
            return False
        if self.is_in_place:
            os.unlink(self.held)
        else:
            os.makedirs(static_pod.FOLDER, mode=0o700, exist_ok=True)
            moves.file(self.held, self.place)
        return True


def manifests(components: list, restore: object) -> list:
    """Each component's; one that is nowhere is a failure, before anything is touched."""
    found = [Manifest(component, restore) for component in components]
    for manifest in found:
        if not manifest.is_in_place and not manifest.is_held:
            raise StepFailure(
                "ManifestMissing",
                f"the manifest of {manifest.component} is neither {manifest.place} nor {manifest.held}: put it back from"
                " /etc/kubernetes/tmp or another control plane",
            )
    return found


def present() -> list:
    """The components that this machine has."""
    return [name for name in COMPONENTS if os.path.exists(f"{static_pod.FOLDER}/{name}.yaml")]


def is_on_host_network(pid: int) -> bool:
    """Whether it shares the machine's network, as the control plane's Pods do: a Pod may run another cluster's."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net")
    except (FileNotFoundError, ProcessLookupError):
        return False


def own_processes(components: list) -> dict:
    """Pids of this machine's own components, by their names."""
    found = {name: [pid for pid in pids if is_on_host_network(pid)] for name, pids in processes.find().items() if name in components}
    return {name: pids for name, pids in sorted(found.items()) if pids}


def kill(components: list) -> None:
    """Ends their processes at once."""
    for pids in own_processes(components).values():
        for pid in pids:
            processes.kill(pid)


def running(components: list, port: int) -> list:
    """What still runs, as sentences' parts."""
    own = own_processes(components)
    found = [f"process {name} ({', '.join(map(str, pids[:4]))})" for name, pids in own.items()]
    if APISERVER in components:
        # haproxy may have the same port on the endpoint's address.
        endpoint = membership.read(membership.LOAD_BALANCER).get("virtual_ip")
        found += [f"a listener on {address}:{port}" for address in listeners.addresses(port) if address != endpoint]
    return found


def unhealthy(components: list, address: str, port: int) -> dict:
    """What the components say that are not healthy, by their names."""
    targets = {
        APISERVER: healthz.apiserver(address, port),
        "kube-controller-manager": healthz.CONTROLLER_MANAGER,
        "kube-scheduler": healthz.SCHEDULER,
    }
    answers = {component: healthz.answer(targets[component]) for component in components}
    return {component: said for component, (well, said) in answers.items() if not well}
