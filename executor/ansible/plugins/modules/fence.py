#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Keeps a machine that was given up from serving or speaking for its cluster once it is back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: fence
short_description: Stops and disables what serves or speaks for the cluster on a machine that is no member any more; deletes no data
description:
  - keepalived, haproxy, the services of a Karmada control plane, the kubelet, everything in Kubernetes' containers, and etcd are stopped,
    and nothing of it comes back with a boot.
  - The machine answers for the endpoint's address and for Pods no more.
  - Only a machine whose guard knows exactly the claim that is given (EpochDiffers). In check mode it tells what still serves.
options:
  claim_epoch:
    description: The Host's claim epoch when its Machine was given up.
    type: int
    required: true
author:
  - Clusterwright developers
"""

import os
import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    containers,
    karmada,
    leftovers,
    membership,
    pod_network,
    processes,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

# In this order: the endpoint's address goes first, and the kubelet before the containers that it would start again.
UNITS = (
    "clusterwright-keepalived.service",
    "clusterwright-haproxy.service",
    # It reports in the Node as the kubelet does.
    "clusterwright-network-probe.service",
    "kubelet.service",
    "etcd.service",
    pod_network.UNIT,
    "clusterwright-network.service",
)
# The API server's is 6443 beside what its own process has; the rest is kubeadm's, the kubelet's, kube-proxy's and etcd's.
PORTS = (2379, 2380, 6443, 10250, 10256, 10257, 10259)
SCRIPT = "/usr/local/sbin/clusterwright-network"
LISTENS = "0A"


def check_claim(epoch: int) -> None:
    """The guard's own word, not the run's: a machine that was claimed since, or is another one, is left as it is."""
    path = os.path.join(os.path.dirname(pod_network.guard()), "fence")
    known = membership.read(path).get("epoch")
    if known != epoch:
        raise StepFailure(
            "EpochDiffers",
            f"claim epoch {epoch} was expected, the guard on this machine knows {known if known is not None else 'none'}:"
            " it was claimed since, or is another machine; nothing was touched",
        )


def known_units() -> list:
    """Those of a cluster and those of a Karmada control plane, in the order in which they are stopped."""
    return [*UNITS[:2], *karmada.units(), *UNITS[2:]]


def serving_units() -> list:
    found = []
    for unit in known_units():
        if units.exists(unit):
            now = units.state(unit)
            if now.get("ActiveState") not in ("inactive", "failed") or now.get("UnitFileState") == "enabled":
                found.append(unit)
    return found


def listening() -> list:
    """The cluster's ports that somebody listens on."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in text(f"/proc/net/{table}").splitlines()[1:]:
            fields = line.split()
            if len(fields) > 3 and fields[3] == LISTENS:
                found.add(int(fields[1].rpartition(":")[2], 16))
    # On a machine of a cluster those of a plane may be somebody else's.
    return sorted(found.intersection(PORTS + (karmada.PORTS if karmada.is_ours() else ())))


def answering() -> list:
    """Files of the interfaces that answer for Pods' addresses, by the script that the network step wrote."""
    # sysctl writes the dot of an interface like eth0.10 as a slash.
    names = re.findall(r"net\.ipv4\.conf\.(\S+)\.proxy_arp=1", text(SCRIPT))
    paths = [f"/proc/sys/net/ipv4/conf/{name.replace('/', '.')}/proxy_arp" for name in names]
    return [path for path in paths if text(path) == "1"]


def bridge_addresses() -> list:
    """Addresses of the Pods' bridge: this machine answers for them on every interface, also while the bridge is down."""
    lines = attempt("ip", "-oneline", "-4", "address", "show", "dev", pod_network.BRIDGE).out.splitlines()
    return [line.split()[3] for line in lines if len(line.split()) > 3]


def serving() -> list:
    """What still serves or speaks for the cluster, as sentences' parts."""
    found = [f"unit {unit}" for unit in serving_units()]
    found += [f"process {name} ({', '.join(map(str, pids[:4]))})" for name, pids in sorted(containers.running().items())]
    inside = processes.descendants(*containers.shims())
    found += [f"{len(inside)} processes in containers"] if inside else []
    found += [f"port {port}" for port in listening()]
    found += [f"address {address}" for address, _interface in leftovers.virtual_addresses()]
    found += [f"ARP answers by {path.split('/')[-2]}" for path in answering()]
    found += [f"address {address} of {pod_network.BRIDGE}" for address in bridge_addresses()]
    return found


def stop() -> None:
    for unit in known_units():
        if units.exists(unit):
            # What does not stop shows in what still serves.
            attempt("systemctl", "disable", "--now", unit, timeout=120)
            if unit == "kubelet.service":
                containers.end()
    # Also where neither kubelet nor etcd is a unit any more.
    containers.end()
    for address, interface in leftovers.virtual_addresses():
        attempt("ip", "address", "delete", f"{address}/32", "dev", interface)
    for path in answering():
        try:
            with open(path, "w", encoding="ascii") as setting:
                setting.write("0\n")
        except OSError:
            continue
    for address in bridge_addresses():
        attempt("ip", "address", "delete", address, "dev", pod_network.BRIDGE)


def work(call) -> dict:
    check_claim(call.params["claim_epoch"])
    before = serving()
    if call.check_mode:
        return {"changed": bool(before), "msg": f"still there: {', '.join(before)}" if before else "nothing serves the cluster"}
    if before:
        stop()
    left = serving()
    if left:
        raise StepFailure("NotFenced", f"still serves or speaks for the cluster: {', '.join(left)}; stop it by hand")
    return {"changed": bool(before), "msg": f"stopped: {', '.join(before)}" if before else "nothing served the cluster"}
