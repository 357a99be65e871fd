# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The directories that a cluster fills on a machine, and where they really are. An administrator may have put one elsewhere by a link;
the paths are recorded when the machine is prepared, and a reset follows no link that leads somewhere else by then."""

from __future__ import annotations

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import karmada, membership, mounts

# Ours, kubeadm's and the network plugins'. They may be mount points, so a directory that is there but empty is clean.
STATE = (
    "/etc/kubernetes",
    "/var/lib/kubelet",
    "/var/lib/etcd",
    "/etc/etcd",
    "/etc/cni/net.d",
    "/var/lib/cni",
    "/var/log/pods",
    "/var/log/containers",
    "/run/kubernetes",
    "/var/cache/clusterwright",
    "/etc/calico",
    "/run/calico",
    "/var/lib/calico",
    "/var/log/calico",
    "/run/cilium",
    "/var/lib/cilium",
    "/run/flannel",
    "/etc/kube-flannel",
)
# Of a Karmada control plane; an administrator may have one of his own there.
PLANE = (karmada.PROGRAMS, karmada.HOME, karmada.STATE)
RUNTIME = ("/var/lib/containerd", "/run/containerd", "/etc/containerd", "/opt/cni/bin")


def state() -> tuple:
    """Those that hold what a cluster or a control plane of ours put there."""
    return STATE + (PLANE if karmada.is_ours() else ())


def record(identity: str, check: bool = False) -> bool:
    """Remembers where the directories lead. What was recorded for this cluster once stays. True when it was not."""
    if membership.read(membership.ROOTS).get("identity") == identity:
        return False
    links = {root: os.path.realpath(root) for root in STATE + PLANE + RUNTIME if os.path.realpath(root) != root}
    membership.save(membership.ROOTS, {"identity": identity, "links": links}, check)
    return True


class Root:
    """One of the directories as it is now."""

    def __init__(self, path: str) -> None:
        self.path = path
        mount = mounts.at(path)
        # Asking a server that is gone would hang.
        self.remote = mount.kind if mount and mount.remote else ""
        self.real = path if self.remote else os.path.realpath(path)
        known = membership.read(membership.ROOTS).get("links", {}).get(path, path)
        self.moved = self.real not in (path, known)
        mount = mounts.at(self.real)
        if mount and mount.remote:
            self.remote = mount.kind

    @property
    def ours(self) -> bool:
        """Whether what is in it is the cluster's alone."""
        return not self.moved and not self.remote

    def filled(self) -> bool:
        """Whether anything is in it; a file system of a server's counts as that."""
        if self.remote:
            return True
        try:
            with os.scandir(self.real) as entries:
                return any(entry.name != "lost+found" for entry in entries)
        except OSError:
            return False

    def describe(self) -> str:
        """What is left, and why it could not be removed where that is so."""
        if self.remote:
            return f"directory {self.path} (a {self.remote} file system of others: unmount it)"
        if self.moved:
            return f"directory {self.path} (it leads to {self.real} since after the install: empty that by hand)"
        return f"directory {self.path}"
