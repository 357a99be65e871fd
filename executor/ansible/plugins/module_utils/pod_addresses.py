# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Pods on this machine with an address of another node's range. A Node that is made anew may be given another range, and the kubelet makes
a Pod's sandbox anew once its processes have ended."""

from __future__ import annotations

import ipaddress
import json
import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import processes
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt

INTERFACE = "eth0"


def namespace_of(pid: object) -> str:
    """The network namespace of a process; empty when it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def by_namespace() -> dict:
    """Pids of Pods by their network namespace, without those that have the machine's."""
    found: dict = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        if processes.in_pod(pid):
            found.setdefault(namespace_of(pid), []).append(pid)
    return {namespace: pids for namespace, pids in found.items() if namespace not in ("", namespace_of("self"))}


def addresses(pid: int) -> list:
    """The IPv4 addresses of a Pod."""
    shown = attempt("nsenter", f"--net=/proc/{pid}/ns/net", "ip", "-json", "-4", "address", "show", "dev", INTERFACE)
    links = json.loads(shown.out) if shown.ok and shown.out.strip() else []
    return [info["local"] for link in links for info in link.get("addr_info", [])]


def strays(pods: str, own: str) -> dict:
    """Pids of the Pods whose address is in the cluster's range, and not in this node's own, by that address."""
    cluster, node = ipaddress.ip_network(pods), ipaddress.ip_network(own)
    found = {}
    for pids in by_namespace().values():
        for address in addresses(pids[0]):
            if ipaddress.ip_address(address) in cluster and ipaddress.ip_address(address) not in node:
                found[address] = pids
    return found


def end(pids: list) -> None:
    """Ends a Pod's processes at once: its address may be another Pod's by now."""
    for pid in pids:
        processes.kill(pid)
