# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The kubelet of this machine: its files, and what of the cluster's configuration its own was made with. A file that was written does not
say that the kubelet works with it: what is recorded here was proved, or was there when kubeadm made the machine a node."""

from __future__ import annotations

import hashlib
import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, membership

UNIT = "kubelet.service"
CONFIG = "/var/lib/kubelet/config.yaml"
# What it reads at its start, beside its program.
READS = ("/etc/systemd/system/kubelet.service", CONFIG, "/var/lib/kubelet/kubeadm-flags.env")
PATCHES = "/etc/kubernetes/patches"
# {settings, config}: what was given by the cluster's configuration, and the digest of the file that was made with it.
RECORD = f"{membership.HOME}/kubelet.json"
# {config, patches}: what was proved last, kept while another configuration is tried.
FORMER = f"{membership.HOME}/kubelet-former.json"


def patch_files(patches: dict) -> list:
    """Patches by the names of their files, as files to write."""
    return [{"path": f"{PATCHES}/{name}", "content": content} for name, content in sorted(patches.items())]


def config_digest() -> str:
    try:
        with open(CONFIG, "rb") as source:
            return hashlib.sha256(source.read()).hexdigest()
    except FileNotFoundError:
        return ""


def record(settings: dict) -> None:
    """Notes that the kubelet has these settings, and that nothing is being tried."""
    if settings:
        membership.save(RECORD, {"settings": settings, "config": config_digest()})
    else:
        files.remove(RECORD)
    files.remove(FORMER)


def lacks(settings: dict) -> str:
    """Why the kubelet does not have these settings; empty when it has. One that was never given any has none."""
    if os.path.exists(FORMER):
        return "another configuration was being tried"
    known = membership.read(RECORD)
    if known.get("settings", {}) != settings:
        return "it has other settings"
    if known and known.get("config") != config_digest():
        return f"{CONFIG} was changed since"
    return ""
