# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What this machine remembers of us under /etc/clusterwright: the cluster it belongs to and what was installed."""

from __future__ import annotations

import json
import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import files
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

HOME = "/etc/clusterwright"
CLUSTER = f"{HOME}/cluster.json"
ROOTS = f"{HOME}/roots.json"
ARTIFACTS = f"{HOME}/artifacts.json"
# Records there of images begin with it; programs' names have no colon.
IMAGE = "image:"
KUBEADM = f"{HOME}/kubeadm.json"
ETCD = f"{HOME}/etcd.json"
LOAD_BALANCER = f"{HOME}/load-balancer/balancer.json"
REBOOT = f"{HOME}/reboot.json"
# What the guard keeps of the Pod network.
NETWORK = f"{HOME}/network.json"
NETWORK_PROBE = f"{HOME}/network-probe.json"
# Whose the directories of a Karmada control plane are, and its programs.
KARMADA = f"{HOME}/karmada.json"


def read(path: str) -> dict:
    """The JSON object in the file; an absent or broken one is empty, so that what it tells about is done again."""
    try:
        with open(path, encoding="utf-8") as source:
            value = json.load(source)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def save(path: str, value: dict, check: bool = False) -> bool:
    """Writes the JSON object. True when it differed."""
    return files.write(path, json.dumps(value, indent=1, sort_keys=True) + "\n", 0o600, check)


def belongs_to(identity: str) -> bool:
    """Whether this machine was prepared for that cluster."""
    return bool(identity) and read(CLUSTER).get("identity") == identity


def is_member() -> bool:
    """Whether this machine was prepared for any cluster."""
    return os.path.exists(CLUSTER)


def check_kubeadm(identity: str) -> None:
    """A kubeadm that was cut short may have started an API server or registered a Node, and left out all that comes after."""
    if identity and read(KUBEADM).get("identity") != identity:
        raise StepFailure("KubeadmUnfinished", "kubeadm has not come to its end on this machine: the step runs again")
