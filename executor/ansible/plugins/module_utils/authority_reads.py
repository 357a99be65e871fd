# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Which processes of this machine read authorities and keys at their start alone, and whether they have read those that are there. All
others of a control plane's files are taken up without a restart: leaves, and authorities of clients in the API server."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    api,
    apiserver_process,
    certificate_places,
    component_process,
    control_plane,
    kubelet,
    kubelet_client,
    prompt_start,
    restarts,
    units,
)

KUBELET = "kubelet"
# They know this machine's API server alone. Once it has been away twice within two minutes, they wait for up to a minute before they list
# Nodes and their Leases again: the controller manager, if it leads, would call Nodes silent meanwhile. Those that begin list at once.
FOLLOWERS = ("kube-controller-manager", "kube-scheduler")


def paths(name: str) -> list:
    pki, home = f"{certificate_places.KUBERNETES}/pki", certificate_places.KUBERNETES
    if name == KUBELET:
        return [f"{pki}/ca.crt", api.KUBELET, *kubelet_client.reads()]
    return {
        "kube-apiserver": [f"{pki}/etcd/ca.crt", f"{pki}/sa.pub", f"{pki}/sa.key", certificate_places.ENCRYPTION],
        "kube-controller-manager": [
            *(f"{pki}/{file}" for file in ("ca.crt", "ca-signer.crt", "ca.key", "sa.key", "front-proxy-ca.crt")),
            f"{home}/controller-manager.conf",
        ],
        "kube-scheduler": [f"{home}/scheduler.conf"],
    }[name]


def names() -> list:
    """Those that are on this machine."""
    return [*control_plane.present(), KUBELET]


def turns() -> list:
    """The same, in the order in which they are started anew: those of one turn at once."""
    present = control_plane.present()
    turns = [[name for name in present if name not in FOLLOWERS], [name for name in present if name in FOLLOWERS], [KUBELET]]
    return [turn for turn in turns if turn]


def states(name: str) -> list:
    """What tells each of its processes from others of the same program."""
    if name == KUBELET:
        return [units.state(kubelet.UNIT)]
    return [apiserver_process.state(pid) for pid in component_process.pids(name)]


def record(name: str) -> str:
    return f"{name}-authorities"


def is_owed(name: str) -> bool:
    """Whether a process of it has read something else than what is in the files now."""
    return any(restarts.due(record(name), state, paths(name)) for state in states(name))


def owed() -> list:
    return [name for name in names() if is_owed(name)]


def remember(name: str) -> None:
    """Notes that what runs has read the files as they are."""
    running = states(name)
    if len(running) == 1:
        restarts.remember(record(name), running[0], paths(name))


def start_anew(turn: list) -> None:
    """Has them begin again; until they are healthy is another matter."""
    if KUBELET in turn:
        prompt_start.start_now()
    else:
        prompt_start.start_anew(turn)
