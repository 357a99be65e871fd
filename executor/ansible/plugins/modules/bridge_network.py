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
  - A systemd unit makes route, ARP settings and masquerading again at each boot.
options:
  node_name:
    description: Name of this machine's Node.
    type: str
    required: true
  address:
    description: Address of this machine in the cluster; its interface carries the Pods' traffic.
    type: str
    required: true
  pod_cidr:
    description: Range of all Pods.
    type: str
    required: true
  timeout_seconds:
    description: Until the node has its range, and again until it is Ready.
    type: int
    default: 120
author:
  - Clusterwright developers
"""

import ipaddress
import json
import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, files, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import run
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.leftovers import ROUTE_PROTOCOL
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import BRIDGE_NETFILTER

CONFIGURATION = "/etc/cni/net.d/10-clusterwright.conflist"
SCRIPT = "/usr/local/sbin/clusterwright-network"
UNIT = "clusterwright-network.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
NETWORKD_FILE = "/etc/systemd/networkd.conf.d/90-clusterwright.conf"

UNIT_TEXT = f"""\
# Written by clusterwright.
[Unit]
Description=Route and address resolution of the Pod network
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

NETWORKD_TEXT = """\
# Written by clusterwright: a restart of systemd-networkd must not drop the route to the Pods.
[Network]
ManageForeignRoutes=no
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


def script(interface: str, pods: str, own: str) -> str:
    """What has to be made again at each boot. One nft transaction: no moment without the rules."""
    # Where bridged packets pass no netfilter, an answer from a Pod on this node would keep the Pod's own address.
    hairpin = "" if os.path.exists(BRIDGE_NETFILTER) else f"\n    ip saddr {own} ip daddr {own} ct status dnat masquerade"
    settings = interface.replace(".", "/")
    return f"""\
#!/bin/sh
# Written by clusterwright. Makes the Pod network of this node; may run again at any time.
set -eu
sysctl -q -w net.ipv4.ip_forward=1 net.ipv4.conf.{settings}.proxy_arp=1 net.ipv4.neigh.{settings}.proxy_delay=0
ip route replace {pods} dev {interface} scope link proto {ROUTE_PROTOCOL}
nft -f - <<'END'
table ip clusterwright
delete table ip clusterwright
table ip clusterwright {{
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {own} ip daddr != {pods} ip daddr != 224.0.0.0/4 oifname != "cni0" masquerade{hairpin}
  }}
}}
END
"""


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
    changed = []
    for file, content, mode in (
        (NETWORKD_FILE, NETWORKD_TEXT, 0o644),
        (SCRIPT, script(interface, params["pod_cidr"], own), 0o755),
        (UNIT_FILE, UNIT_TEXT, 0o644),
    ):
        if files.write(file, content, mode, check):
            changed.append(file)
    if units.ensure(UNIT, restart=bool(changed), check=check, reads=(SCRIPT, UNIT_FILE)):
        changed.append(UNIT)
    # Last: with this file the node becomes Ready.
    if files.write(CONFIGURATION, conflist(own), 0o644, check):
        changed.append(CONFIGURATION)
    return {"changed": bool(changed), "written": changed, "pod_cidr": own, "interface": interface}
