# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""firewalld: whether it is at work on this machine, and the commands by which it lets a cluster through."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils import karmada
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt, find

UNIT = "firewalld.service"
# What machines of each role take from others, as host_findings.OPEN says it in words.
PORTS = {
    "control-plane": ("6443/tcp", "10250/tcp"),
    "etcd": ("2379-2380/tcp",),
    "worker": ("10250/tcp", "30000-32767/tcp", "30000-32767/udp"),
    "karmada-control-plane": tuple(f"{port}/tcp" for port in karmada.SERVING),
}


def running() -> bool:
    """Whether it filters packets here: as systemd has it, or as it says itself where another one started it."""
    if attempt("systemctl", "is-active", UNIT, timeout=10).out.strip() == "active":
        return True
    return bool(find("firewall-cmd")) and attempt("firewall-cmd", "--state", timeout=10).out.strip() == "running"


def commands(params: dict) -> list:
    """Commands that let in what a machine of these roles takes, and let through what Pods send and get. They ask for what is there already
    as well: that is no error to firewalld."""
    ports = dict.fromkeys(port for role, ports in PORTS.items() if role in params["roles"] for port in ports)
    # A call does changes of one kind, and leaves out those of another.
    lines = [f"firewall-cmd --permanent {' '.join(f'--add-port={port}' for port in ports)}"] if ports else []
    if params["virtual_ip"]:
        lines.append("firewall-cmd --permanent --add-protocol=vrrp")
    pods = [block.strip() for block in params["pod_cidr"].split(",") if block.strip()]
    if pods and {"control-plane", "worker"}.intersection(params["roles"]):
        lines.append(f"firewall-cmd --permanent --zone=trusted {' '.join(f'--add-source={block}' for block in pods)}")
    return [*lines, "firewall-cmd --reload"]
