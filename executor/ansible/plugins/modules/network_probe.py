#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The service by which a machine finds that it is cut off from other nodes' Pods or from the cluster's DNS."""

from __future__ import annotations

DOCUMENTATION = r"""
module: network_probe
short_description: Installs and runs the probe of the Pod network, which reports in conditions of this machine's Node
description:
  - Whom the machine asks is in an annotation of its Node. Without one it asks nobody and reports nothing.
  - It uses the kubelet's credentials, which allow to read and to patch this Node alone.
options:
  dns_domain:
    description: Domain of the cluster's Services.
    type: str
    required: true
  program:
    description: Source of the program.
    type: str
    required: true
extends_documentation_fragment:
  - clusterwright.cluster.arguments.node
author:
  - Clusterwright developers
"""

import json
import sys

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, files, membership, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.network_evidence import PROGRAM

UNIT = "clusterwright-network-probe.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"


def unit_text(python: str) -> str:
    # The kubelet is not wanted by it: where somebody stopped or disabled that, it must not come back through this unit.
    return f"""\
# Written by clusterwright.
[Unit]
Description=Asks other nodes' Pod networks and the cluster's DNS whether they answer
Wants=network-online.target
After=network-online.target kubelet.service

[Service]
ExecStart={python} -I -S {PROGRAM} {membership.NETWORK_PROBE}
Restart=always
RestartSec=30
Nice=10
CPUWeight=20
MemoryMax=64M
TasksMax=8
OOMScoreAdjust=500
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
LockPersonality=yes
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
"""


def work(call) -> dict:
    params, check = call.params, call.check_mode
    configuration = {"node": params["node_name"], "dnsDomain": params["dns_domain"], "kubeconfig": api.KUBELET}
    changed = []
    for path, content, mode in (
        (PROGRAM, params["program"], 0o755),
        (membership.NETWORK_PROBE, json.dumps(configuration, indent=1, sort_keys=True) + "\n", 0o644),
        (UNIT_FILE, unit_text(sys.executable or "/usr/bin/python3"), 0o644),
    ):
        if files.write(path, content, mode, check):
            changed.append(path)
    if units.ensure(UNIT, restart=bool(changed), check=check, reads=(PROGRAM, membership.NETWORK_PROBE, UNIT_FILE)):
        changed.append(UNIT)
    said = f"differs from what is wanted: {', '.join(changed)}" if check and changed else ""
    return {"changed": bool(changed), "written": changed, "msg": said}
