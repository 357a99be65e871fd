# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Preflight checks of addresses: the cluster's ranges against each other and against the networks around the machine."""

from __future__ import annotations

import ipaddress

from ansible_collections.clusterwright.cluster.plugins.module_utils import arp, links, membership, ranges, routing
from ansible_collections.clusterwright.cluster.plugins.module_utils.finding import error
from ansible_collections.clusterwright.cluster.plugins.module_utils.iproute import shown


def networks(params: dict) -> list:
    """Clashes of the cluster's address ranges with each other and with the networks that this machine is in."""
    wanted = {}
    found = []
    for name in ("pod_cidr", "service_cidr"):
        try:
            wanted[name] = [ipaddress.ip_network(part.strip()) for part in params[name].split(",") if part.strip()]
        except ValueError as problem:
            found.append(error("cidr-invalid", f"{name} {params[name]}: {problem}"))
            return found
    labels = {"pod_cidr": "the Pods' range", "service_cidr": "the Services' range"}
    own = [network for networks_ in wanted.values() for network in networks_] if membership.belongs_to(params["identity"]) else []
    present = present_networks(own)
    pairs = [(labels[name], network) for name, networks_ in wanted.items() for network in networks_]
    for number, (label, network) in enumerate(pairs):
        for other_label, other in pairs[number + 1:]:
            if network.version == other.version and network.overlaps(other):
                found.append(error("cidr-overlap", f"{label} {network} overlaps {other_label} {other}"))
        for where, other in present:
            if network.version == other.version and network.overlaps(other):
                found.append(error("cidr-overlap", f"{label} {network} overlaps {other} ({where}): choose another range"))
    if params["ip"] and params["ip"] not in addresses():
        found.append(error("address", f"no interface has the address {params['ip']}: correct internalAddress of the Host"))
    return found


def endpoint(params: dict) -> list:
    """An address for keepalived must be nobody's yet, and one of the network that the machine is in."""
    text = params["virtual_ip"]
    if not text:
        return []
    try:
        virtual = ipaddress.ip_address(text)
    except ValueError as problem:
        return [error("vip-invalid", f"the endpoint's address {text}: {problem}")]
    nodes = {backend.rpartition(":")[0].strip("[]") for backend in params["backends"]} | {params["ip"]}
    if text in nodes:
        return [error("vip-is-node", f"VIPInUse: the endpoint's address {text} is a machine's own: choose a free one")]
    device = params["virtual_ip_interface"] or interface_of(params["ip"])
    around = [
        ipaddress.ip_interface(f"{info['local']}/{info['prefixlen']}").network
        for link in interfaces()
        for info in link.get("addr_info", [])
        if link.get("ifname") == device and info.get("scope") == "global" and info.get("local") != text
    ]
    if not any(virtual in network for network in around if network.version == virtual.version):
        networks_ = ", ".join(map(str, around)) or "none"
        return [error("vip-outside-subnet", f"the endpoint's address {text} is not in a network of {device or 'this machine'} ({networks_})")]
    if params["cluster_exists"] or membership.belongs_to(params["identity"]):
        # Its own control planes hold it.
        return []
    if text in addresses():
        return [error("vip-in-use", f"VIPInUse: this machine has the endpoint's address {text} already: choose a free one")]
    macs = arp.who_has(device, [text], 0.5).get(text)
    if macs:
        holder = arp.names(device, macs, params["endpoint_neighbours"])
        return [error("vip-in-use", f"VIPInUse by {holder}: another machine answers for the endpoint's address {text}")]
    return []


def neighbours(params: dict) -> list:
    """Another cluster on this L2 network with the same range for Pods: its nodes would answer for our Pods' addresses."""
    if not params["bridge"] or membership.belongs_to(params["identity"]):
        return []
    device = interface_of(params["ip"])
    if not device:
        return []
    answers = arp.who_has(device, arp.gateways(params["pod_cidr"]))
    # A cluster that exists has nodes that answer rightly, one for each address.
    wrong = {address: macs for address, macs in answers.items() if len(macs) > 1 or not params["cluster_exists"]}
    if not wrong:
        return []
    seen = ", ".join(f"{address} by {' and '.join(sorted(macs))}" for address, macs in sorted(wrong.items())[:4])
    return [
        error(
            "cidr-in-use",
            f"another cluster on this network uses addresses of {params['pod_cidr']} for its Pods ({seen}): choose another range",
        )
    ]


def interfaces() -> list:
    """Interfaces with their addresses, from ip."""
    return shown("address", "show")


def interface_of(address: str) -> str:
    """The interface with the address, or nothing."""
    for link in interfaces():
        if any(info.get("local") == address for info in link.get("addr_info", [])):
            return link["ifname"]
    return ""


def addresses() -> set:
    return {info["local"] for link in interfaces() for info in link.get("addr_info", []) if "local" in info}


def present_networks(own: list) -> list:
    """(where, network) this machine reaches directly or by a route, other than the default and what a cluster's network added. `own`:
    the ranges of the cluster that the machine belongs to already, for which its plugin adds interfaces and routes of any name."""
    found, known = [], set()
    of_pods = ranges.of_pods() if own else []
    for link in interfaces():
        if links.of_cluster(link.get("ifname", "")):
            continue
        for info in link.get("addr_info", []):
            if info.get("scope") == "global" and "local" in info:
                network = ipaddress.ip_interface(f"{info['local']}/{info['prefixlen']}").network
                known.add(network)
                if not ranges.within(network, of_pods):
                    found.append((f"interface {link['ifname']}", network))
    for route in shown("-4", "route", "show"):
        network = routing.destination(route)
        if network is None or network in known or routing.of_cluster(route, own):
            continue
        where = f"route by {route['dev']}" if "dev" in route else f"{route.get('type', '')} route".strip()
        found.append((where, network))
    return found
