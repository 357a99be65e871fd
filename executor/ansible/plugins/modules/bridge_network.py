#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The Pod network of machines on one L2 network, without an agent."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bridge_network
short_description: Configures the CNI bridge plugin for this node's Pod range and the route to all other nodes' Pods
description:
  - The bridge plugin gives Pods addresses of the node's own range. The whole Pod range is routed on-link over the machine's
    interface, and each machine answers ARP for its own Pods, so that a node that joins changes nothing on the others.
  - What is addressed to Services or Pods and leads to no endpoint is rejected on this node; it never leaves by the default route.
  - A Node that was made anew may have another range. The bridge then has that one's address alone, and Pods here with an address of
    the former range are ended, so that the kubelet makes them anew.
  - A systemd unit makes the route, ARP settings and packet rules again at each boot.
  - Another one, the guard's, puts back within seconds what is taken away while the machine runs. Not where no guard is.
options:
  address:
    description: Address of this machine in the cluster; its interface carries the Pods' traffic.
    type: str
    required: true
  pod_cidr:
    description: Range of all Pods.
    type: str
    required: true
  service_cidr:
    description: Range of the Services' addresses; ranges are separated by commas.
    type: str
    required: true
  timeout_seconds:
    description: Until the node has its range, and again until it is Ready.
    type: int
    default: 120
extends_documentation_fragment:
  - clusterwright.cluster.arguments.node
author:
  - Clusterwright developers
"""

import ipaddress
import json
import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    api,
    files,
    network_manager,
    networkd,
    pod_addresses,
    pod_network,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt, run
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.leftovers import ROUTE_PROTOCOL
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import BRIDGE_NETFILTER

CONFIGURATION = "/etc/cni/net.d/10-clusterwright.conflist"
SCRIPT = "/usr/local/sbin/clusterwright-network"
UNIT = "clusterwright-network.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"

UNIT_TEXT = f"""\
# Written by clusterwright.
[Unit]
Description=Routes, address resolution and packet rules of the Pod network
Wants=network-online.target
After=network-online.target systemd-sysctl.service
Before=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={SCRIPT}

[Install]
WantedBy=multi-user.target
"""


def interface_of(address: str) -> str:
    """The interface with the address."""
    output = run("ip", "-json", "address", "show", reason="NetworkFailed")
    for link in json.loads(output):
        if any(info.get("local") == address for info in link.get("addr_info", [])):
            return link["ifname"]
    raise StepFailure("AddressNotFound", f"no interface has the address {address}: correct the Host's internalAddress")


def conflist(own: str) -> str:
    """The CNI configuration. Masquerading is the script's: the plugin's would hide Pods from Pods on other nodes."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "isDefaultGateway": True,
        "hairpinMode": True,
        "ipMasq": False,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": own}]], "dataDir": "/var/lib/cni/networks"},
    }
    plugins = [bridge, {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}]
    return json.dumps({"cniVersion": "1.0.0", "name": "clusterwright", "plugins": plugins}, indent=1) + "\n"


def gateway(own: str) -> str:
    """The first address of the node's range, with the prefix: what the bridge plugin gives to cni0."""
    network = ipaddress.ip_network(own)
    return f"{network.network_address + 1}/{network.prefixlen}"


def ipv4_ranges(ranges: str) -> list:
    """The IPv4 ones of ranges that are separated by commas."""
    networks = [ipaddress.ip_network(part.strip()) for part in ranges.split(",") if part.strip()]
    return [str(network) for network in networks if network.version == 4]


def rejections(interface: str, pods: str, services: list) -> str:
    """The rules of a hook behind kube-proxy's DNAT: what still has a Service's address there has no endpoint. A Pod's address
    leads to a bridge or on-link to its node; by a gateway or another interface it would leave the cluster. Addresses that the
    machine itself has (a DNS cache's) leave by `lo`."""
    to_services = "".join(
        f"\n    ip daddr {service} oifname != \"lo\" reject with icmp type port-unreachable" for service in services
    )
    return f"""{to_services}
    ip daddr {pods} oifname != {{ "lo", "cni0", "{interface}" }} reject with icmp type host-unreachable
    ip daddr {pods} rt nexthop != {pods} reject with icmp type host-unreachable"""


def script(interface: str, pods: str, own: str, services: list) -> str:
    """What has to be made again at each boot. One nft transaction: no moment without the rules."""
    # Where bridged packets pass no netfilter, an answer from a Pod on this node would keep the Pod's own address.
    hairpin = "" if os.path.exists(BRIDGE_NETFILTER) else f"\n    ip saddr {own} ip daddr {own} ct status dnat masquerade"
    settings = interface.replace(".", "/")
    rejected = rejections(interface, pods, services)
    # The bridge is there before the first Pod: without it this node's own range leads back to the wire.
    return f"""\
#!/bin/sh
# Written by clusterwright. Makes the Pod network of this node; may run again at any time.
set -eu
sysctl -q -w net.ipv4.ip_forward=1 net.ipv4.conf.{settings}.proxy_arp=1 net.ipv4.neigh.{settings}.proxy_delay=0
ip link show dev cni0 >/dev/null 2>&1 || ip link add cni0 type bridge
ip address replace {gateway(own)} dev cni0
ip -oneline -4 address show dev cni0 | while read -r _ _ _ other _; do
  [ "$other" = {gateway(own)} ] || ip address delete "$other" dev cni0
done
ip link set cni0 up
ip route replace {pods} dev {interface} scope link proto {ROUTE_PROTOCOL}
nft -f - <<'END'
table ip clusterwright
delete table ip clusterwright
table ip clusterwright {{
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {own} ip daddr != {pods} ip daddr != 224.0.0.0/4 oifname != "cni0" masquerade{hairpin}
  }}
  chain forward {{
    type filter hook forward priority filter; policy accept;{rejected}
  }}
  chain output {{
    type filter hook output priority filter; policy accept;{rejected}
  }}
}}
END
"""


def drift(interface: str, pods: str, own: str, services: list) -> list:
    """What the script made and is there no more, by name: a flushed ruleset, a route that somebody removed."""
    missing = []
    routes = attempt("ip", "-4", "route", "show", pods, "proto", ROUTE_PROTOCOL).out
    if f"dev {interface} " not in routes.replace("\n", " \n"):
        missing.append(f"route {pods} dev {interface}")
    addresses = attempt("ip", "-oneline", "-4", "address", "show", "dev", "cni0").out
    if f"inet {gateway(own)} " not in addresses:
        missing.append(f"address {gateway(own)} dev cni0")
    if addresses.count(" inet ") > 1:
        missing.append("one address alone on cni0")
    table = attempt("nft", "list", "table", "ip", "clusterwright").out
    wanted = {"postrouting": [f"daddr != {pods} "]}
    wanted["forward"] = wanted["output"] = [f"daddr {destination} " for destination in (*services, pods)]
    for chain, rules in wanted.items():
        present = table.partition(f"\tchain {chain} {{")[2].partition("\n\t}")[0]
        if not all(rule in present for rule in rules):
            missing.append(f"chain {chain} of nft table clusterwright")
    return missing


def work(call) -> dict:
    params, check = call.params, call.check_mode
    client = Api(api.KUBELET)
    path = f"/api/v1/nodes/{params['node_name']}"

    def pod_range() -> str:
        return ((client.ask(path) or {}).get("spec") or {}).get("podCIDR", "")

    own = wait(
        pod_range,
        params["timeout_seconds"],
        "NodeNotReady",
        lambda: f"node {params['node_name']} has no podCIDR yet: is kube-controller-manager healthy?",
    )
    if ipaddress.ip_network(own).version != 4:
        raise StepFailure("NetworkUnsupported", f"the bridge network is for IPv4, node {params['node_name']} has {own}")
    interface = interface_of(params["address"])
    services = ipv4_ranges(params["service_cidr"])
    # The prepare step's as well, before anything is here that a restart of networkd could take away.
    changed = networkd.leave_routes(check) + network_manager.leave_interfaces(check)
    for file, content, mode in (
        (SCRIPT, script(interface, params["pod_cidr"], own, services), 0o755),
        (UNIT_FILE, UNIT_TEXT, 0o644),
    ):
        if files.write(file, content, mode, check):
            changed.append(file)
    changed += drift(interface, params["pod_cidr"], own, services)
    if units.ensure(UNIT, restart=bool(changed), check=check, reads=(SCRIPT, UNIT_FILE)):
        changed.append(UNIT)
    # Last: with this file the node becomes Ready.
    if files.write(CONFIGURATION, conflist(own), 0o644, check):
        changed.append(CONFIGURATION)
    for address, pids in pod_addresses.strays(params["pod_cidr"], own).items():
        changed.append(f"a Pod with address {address}")
        if not check:
            pod_addresses.end(pids)
    kept = {CONFIGURATION: conflist(own)}
    changed += pod_network.keep(pod_network.wanted(interface, params["pod_cidr"], own, SCRIPT, kept), check)
    said = f"differs from what is wanted: {', '.join(changed)}" if check and changed else ""
    return {"changed": bool(changed), "written": changed, "pod_cidr": own, "interface": interface, "msg": said}
