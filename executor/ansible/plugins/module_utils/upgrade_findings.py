# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What stands against another version of Kubernetes on one machine: each check looks at one thing, and none changes anything."""

from __future__ import annotations

import os
import shutil
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    certificate_places,
    control_plane,
    feature_gates,
    kubelet_flags,
    machine,
    membership,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle import Bundle
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import LOCAL, Etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.finding import error, warning
from ansible_collections.clusterwright.cluster.plugins.module_utils.versions import minor, rank

KUBELET_CONFIG = "/var/lib/kubelet/config.yaml"
# The first kubelets that do not start with cgroups v1, and that warn of a containerd older than that.
NEEDS_CGROUP_V2, NEEDS_CONTAINERD_2 = "1.35", "1.36"
# Free space, in MiB, beside what the programs and images of the version take under /var/lib.
FREE_MIB = {"/usr/local": 512, "/etc": 32}
CERTIFICATE_ERROR_SECONDS, CERTIFICATE_WARNING_SECONDS = 3600, 7 * 86400
ETCD_WARNING_PERCENT = 80


def is_at_least(version: str, least: str) -> bool:
    return rank(minor(version)) >= rank(least)


def disk(params: dict) -> list:
    """Space for programs and images, and for what kubeadm writes."""
    found = []
    for directory, needed in {"/var/lib": params["disk_minimum_mib"], **FREE_MIB}.items():
        free = shutil.disk_usage(directory).free // (1024 * 1024)
        if free < needed:
            found.append(error("disk", f"{free} MiB free under {directory}: at least {needed} MiB are needed for the upgrade"))
    return found


def cgroups(params: dict) -> list:
    """In a container, where only tests run, the kubelet is told not to mind."""
    if not is_node(params) or machine.container() or machine.cgroup_version() != 1 or not is_at_least(params["version"], NEEDS_CGROUP_V2):
        return []
    return [
        error(
            "cgroup-v1",
            f"the kubelet of {NEEDS_CGROUP_V2} and later does not start with cgroups v1: remove systemd.unified_cgroup_hierarchy=0 from the"
            " kernel's command line and reboot",
        )
    ]


def containerd(params: dict) -> list:
    """The containerd that the upgrade brings: an old one does not tell the kubelet which cgroup driver it has."""
    if not is_node(params) or not is_at_least(params["version"], NEEDS_CONTAINERD_2):
        return []
    try:
        (brought,) = Bundle(params["bundle"]).resolve([{"name": "containerd", "version": params["containerd_version"]}])
    except StepFailure:
        # The finding on the bundle tells.
        return []
    if rank(brought["version"]) >= rank("2.0"):
        return []
    return [
        warning(
            "containerd-old",
            f"the bundle brings containerd {brought['version']}: Kubernetes {NEEDS_CONTAINERD_2} still works with it, a later one will not;"
            " put containerd 2 into the bundle",
        )
    ]


def kubelet(params: dict) -> list:
    """Flags and feature gates of this machine's kubelet that the new one refuses. Flags of kubeadm's own are removed by the upgrade."""
    if not is_node(params):
        return []
    words: list = []
    for pid in control_plane.own_processes(["kubelet"]).get("kubelet", []):
        words += machine.text(f"/proc/{pid}/cmdline").split("\0")
    flags = {name.lstrip("-"): value for name, _equals, value in (word.partition("=") for word in words if word.startswith("-"))}
    kubeadms = machine.text(kubelet_flags.FILE)
    found = [
        error("kubelet-flag", f"the kubelet is started with --{flag}, which {minor(params['version'])} does not know: take it out of its unit")
        for flag, since in kubelet_flags.GONE.items()
        if flag in flags and f"--{flag}" not in kubeadms and rank(params["version"]) >= rank(since)
    ]
    gates = {**feature_gates.mapping(machine.text(KUBELET_CONFIG)), **feature_gates.flag(flags.get("feature-gates", ""))}
    installed = membership.read(membership.ARTIFACTS).get("kubelet", {}).get("version") or params["version"]
    refused = feature_gates.refused(gates, minor(installed), minor(params["version"]), feature_gates.COMPONENTS)
    return found + [error("feature-gate", f"feature gate {said}, and this machine's kubelet sets it: remove it") for said in refused]


def certificates(params: dict) -> list:
    """Certificates that end while the upgrade is under way."""
    found = []
    for entry in certificate_places.seen(params["address"], params["port"]):
        left = entry["expiresAt"] - time.time()
        if left >= CERTIFICATE_WARNING_SECONDS:
            continue
        kind = error if left < CERTIFICATE_ERROR_SECONDS else warning
        when = "has ended" if left < 0 else f"ends in {left / 3600:.0f} h"
        found.append(kind("certificate-ends", f"certificate {entry['name']} {when}: have the certificates renewed first"))
    return found


def etcd(params: dict) -> list:
    """This machine's member."""
    if "etcd" not in params["roles"]:
        return []
    local = Etcd(params["pki_directory"], [LOCAL])
    if not local.works(LOCAL):
        return [error("etcd-unhealthy", f"this machine's member of etcd is not healthy: {local.said}")]
    status = local.status()
    alarms = local.alarms_by_member()
    names = sorted({*alarms.get(status["header"]["member_id"], []), *alarms.get(0, [])})
    found = [error("etcd-alarm", f"etcd has the alarm {name}: see docs/operations/etcd.md, and etcdctl alarm disarm afterwards") for name in names]
    quota, size = status.get("dbSizeQuota", 0), status["dbSize"]
    if quota and size * 100 >= quota * ETCD_WARNING_PERCENT:
        found.append(warning("etcd-space", f"etcd's database takes {size * 100 // quota} % of its quota: defragment it, or raise the quota"))
    return found


def is_node(params: dict) -> bool:
    return bool({"control-plane", "worker"}.intersection(params["roles"])) and os.path.exists(KUBELET_CONFIG)


CHECKS = (disk, cgroups, containerd, kubelet, certificates, etcd)
