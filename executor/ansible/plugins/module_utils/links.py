# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Interfaces that only a cluster's network has: kube-proxy's and our own, Calico's, Cilium's and Flannel's, and of any other plugin
those with an address in the Pods' range."""

from __future__ import annotations

import ipaddress
import os
import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import ranges
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.iproute import shown

NAMES = re.compile(
    r"cni0|kube-ipvs0|nodelocaldns"
    r"|cali[0-9a-f]{11}|vxlan\.calico|vxlan-v6\.calico|wireguard\.cali|wg-v6\.cali|bpfin\.cali|bpfout\.cali"
    # Cilium's ends of its Pods' interfaces; lxcbr0 and the like are LXC's.
    r"|cilium_.+|lxc_health|lxc[0-9a-f]{12}"
    r"|flannel[.-].+"
)
# Made by the kernel with its module ipip, and not to be deleted: Calico only gives it an address.
TUNNEL = "tunl0"


def of_cluster(name: str) -> bool:
    """Whether an interface of this name is a cluster's."""
    return name == TUNNEL or bool(NAMES.fullmatch(name))


def interfaces() -> list:
    try:
        present = os.listdir("/sys/class/net")
    except OSError:
        return []
    return sorted({name for name in present if NAMES.fullmatch(name)} | set(of_pods()))


def of_pods() -> list:
    """Interfaces of software that have an address in the Pods' range."""
    known = ranges.of_pods()
    if not known:
        return []
    return [
        name
        for name, address in addresses()
        if ranges.within(ipaddress.ip_interface(address).network, known) and os.path.exists(f"/sys/devices/virtual/net/{name}")
    ]


def addresses(*of: str) -> list:
    """(interface, address with its prefix), of all interfaces or of the one that is named."""
    return [
        (link["ifname"], f"{info['local']}/{info['prefixlen']}")
        for link in shown("address", "show", *of)
        for info in link.get("addr_info", [])
        if "local" in info
    ]


def tunnel_addresses() -> list:
    """Addresses with their prefix that the tunnel has."""
    if not os.path.exists(f"/sys/class/net/{TUNNEL}"):
        return []
    return [address for _name, address in addresses("dev", TUNNEL)]


def find() -> list:
    return [f"interface {name}" for name in interfaces()] + [f"address {address} of {TUNNEL}" for address in tunnel_addresses()]


def remove() -> None:
    for name in interfaces():
        attempt("ip", "link", "delete", name)
    if tunnel_addresses():
        attempt("ip", "address", "flush", "dev", TUNNEL)
        attempt("ip", "link", "set", TUNNEL, "down")
