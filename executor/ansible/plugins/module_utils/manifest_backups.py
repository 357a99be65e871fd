# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What kubeadm leaves below /etc/kubernetes/tmp when it upgrades a machine. It renames a manifest away, and then the new one into its
place: where it was cut off between them, there is none, and no kubeadm would begin again."""

from __future__ import annotations

import glob
import os
import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import moves, removal, static_pod
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.restore_places import HELD

FOLDER = "/etc/kubernetes/tmp"
MANIFESTS = "kubeadm-backup-manifests"
# Each is followed by a time or a number.
KINDS = (MANIFESTS, "kubeadm-backup-etcd", "kubeadm-upgraded-manifests", "kubeadm-kubelet-config", "kubeadm-kubelet-env")
KEPT = 3


def newest_first(paths: list) -> list:
    return sorted(paths, key=lambda path: (os.stat(path).st_mtime_ns, path), reverse=True)


def is_whole(path: str, component: str) -> bool:
    """Whether the file is the manifest of this component, to its end: kubeadm writes `status` last."""
    try:
        with open(path, encoding="utf-8") as source:
            text = source.read()
    except (OSError, ValueError):
        return False
    kind = re.search(r"^kind: Pod$", text, re.MULTILINE)
    name = re.search(rf"^  name: {re.escape(component)}$", text, re.MULTILINE)
    return bool(kind and name and re.search(r"^status: \{\}$", text.rstrip().rpartition("\n")[2]))


def put_back(components: tuple) -> list:
    """Puts back the newest whole backup of each manifest that is missing; their components. Fails with ManifestMissing where there is
    none, and with ControlPlaneNotReleased where a restore holds them."""
    done = []
    for component in components:
        target = f"{static_pod.FOLDER}/{component}.yaml"
        if os.path.lexists(target):
            continue
        held = glob.glob(f"{HELD}/*/{component}.yaml")
        if held:
            raise StepFailure("ControlPlaneNotReleased", f"a restore holds {held[0]}: let it come to its end first")
        folders = newest_first(glob.glob(f"{FOLDER}/{MANIFESTS}-*"))
        backups = [path for path in (f"{folder}/{component}.yaml" for folder in folders) if is_whole(path, component)]
        if not backups:
            raise StepFailure(
                "ManifestMissing",
                f"{target} is missing, and no {FOLDER}/{MANIFESTS}-* has a whole one: put it back from another control plane",
            )
        moves.copy(backups[0], target)
        done.append(component)
    return done


def prune() -> None:
    """Keeps the newest of each kind. Every attempt of kubeadm's leaves some, and kubeadm removes none."""
    for kind in KINDS:
        for path in newest_first(glob.glob(f"{FOLDER}/{kind}[-0-9]*"))[KEPT:]:
            removal.remove(path)
