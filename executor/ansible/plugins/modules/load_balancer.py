#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The cluster's endpoint on its control planes: one of them holds the address, and gives connections to all API servers."""

from __future__ import annotations

DOCUMENTATION = r"""
module: load_balancer
short_description: keepalived, which holds the virtual address on one control plane, and haproxy, which spreads what comes there
description:
  - Both run as units of ours with configurations of ours; what the distribution's packages bring is left alone.
  - haproxy listens on the virtual address only, on each control plane, whether or not it holds the address now.
  - A machine whose haproxy is dead gives the address up; one whose haproxy sees no API server yields to one that does. A machine that
    comes back takes nothing away from the one that holds it.
  - Where SELinux is at work, both are let to all ports by booleans of its policy; a reset turns off those that were off before.
  - A newcomer whom the holder does not know would take the address a second time, so it does not start then (LoadBalancerPeersUnaware).
options:
  virtual_ip:
    description: The endpoint's address.
    type: str
    required: true
  port:
    description: The endpoint's port.
    type: int
    required: true
  router_id:
    description: Number of the virtual router, one for each cluster of the network.
    type: int
    required: true
  interface:
    description: Interface that holds the address. Empty - the one with this machine's address.
    type: str
    default: ""
  address:
    description: Address of this machine.
    type: str
    required: true
  backends:
    description: The API servers, as host:port.
    type: list
    elements: str
    required: true
  endpoint_neighbours:
    description: Names of Hosts that may hold the address, by their own addresses; for messages.
    type: dict
    default: {}
  ca:
    description: Certificate of the cluster's authority. Empty - the one that this machine has.
    type: str
    default: ""
  ca_path:
    description: Where this machine has it.
    type: path
    default: /etc/kubernetes/pki/ca.crt
  health_path:
    description: What an API server is asked for, which answers 200 if it is well.
    type: str
    default: /readyz
  health_port:
    description: Where haproxy says, to this machine only, how it is.
    type: int
    default: 8405
  timeout_seconds:
    description: Until the address is held by somebody, and until the API answers there, once this machine has a control plane.
    type: int
    default: 30
author:
  - Clusterwright developers
"""

import ipaddress
import json
import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    arp,
    files,
    healthz,
    karmada,
    membership,
    selinux,
    units,
    vrrp,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt, find
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.network_findings import addresses, interface_of
from ansible_collections.clusterwright.cluster.plugins.module_utils.trust import believing

HOME = f"{membership.HOME}/load-balancer"
CA = f"{HOME}/ca.crt"
HAPROXY = f"{HOME}/haproxy.cfg"
HAPROXY_UNIT = "clusterwright-haproxy.service"
KEEPALIVED = f"{HOME}/keepalived.conf"
KEEPALIVED_UNIT = "clusterwright-keepalived.service"
CHECK = "/usr/local/sbin/clusterwright-check-endpoint"
# Three announcements of a second each, and some.
LISTEN_SECONDS = 4
# Without them SELinux lets the programs of the distribution use a few ports alone, not those of API servers.
BOOLEANS = ("haproxy_connect_any", "keepalived_connect_any")

HAPROXY_UNIT_TEXT = f"""\
# Written by clusterwright.
[Unit]
Description=Connections to the cluster's API servers
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
ExecStart=/usr/sbin/haproxy -Ws -f {HAPROXY} -p /run/clusterwright-haproxy.pid
ExecReload=/usr/sbin/haproxy -c -q -f {HAPROXY}
ExecReload=/bin/kill -USR2 $MAINPID
KillMode=mixed
Restart=always
RestartSec=1
SuccessExitStatus=143
LimitNOFILE=65536

[Install]
WantedBy=multi-user.target
"""

KEEPALIVED_UNIT_TEXT = f"""\
# Written by clusterwright.
[Unit]
Description=The address of the cluster's endpoint
Wants=network-online.target
After=network-online.target {HAPROXY_UNIT}

[Service]
ExecStart=/usr/sbin/keepalived --dont-fork --log-console --vrrp --use-file={KEEPALIVED} \\
    --pid=/run/clusterwright-keepalived.pid --vrrp_pid=/run/clusterwright-vrrp.pid
ExecReload=/bin/kill -HUP $MAINPID
KillMode=mixed
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
"""


def check_text(port: int) -> str:
    """Asks haproxy: whether it lives, or whether it sees an API server."""
    return f"""\
#!/bin/bash
# Written by clusterwright. Usage: clusterwright-check-endpoint alive|serves
exec 3<>/dev/tcp/127.0.0.1/{port} || exit 1
printf 'GET /%s HTTP/1.0\\r\\n\\r\\n' "$1" >&3
read -r -t 2 line <&3 || exit 1
[[ $line == *" 200 "* ]]
"""


def haproxy_text(params: dict) -> str:
    servers = "\n".join(
        f"    server {backend.replace(':', '-').replace('[', '').replace(']', '')} {backend}" for backend in params["backends"]
    )
    return f"""\
# Written by clusterwright.
global
    log stdout format raw local0 warning
    user haproxy
    group haproxy
    maxconn 8000
    # A machine with lower limits serves fewer, and does not fail.
    no strict-limits

defaults
    log global
    mode tcp
    option dontlognull
    option clitcpka
    option srvtcpka
    option redispatch 1
    retries 3
    timeout connect 1s
    timeout check 2s
    # A watch says nothing for minutes; both ends ask each other whether they are still there.
    timeout client 30m
    timeout server 30m

# One for each of what is asked, since a frontend has one address for this.
frontend alive
    mode http
    bind 127.0.0.1:{params["health_port"]}
    timeout client 5s
    acl serves path /serves
    acl none nbsrv(apiservers) lt 1
    http-request return status 503 if serves none
    http-request return status 200

frontend kubernetes
    # On each control plane, also on those that do not hold the address now.
    bind {params["virtual_ip"]}:{params["port"]} transparent
    default_backend apiservers

backend apiservers
    balance leastconn
    option httpchk GET {params["health_path"]}
    http-check expect status 200
    default-server check check-ssl verify required ca-file {CA} inter 1s fastinter 500ms downinter 1s rise 2 fall 2 on-marked-down shutdown-sessions
{servers}
"""


def keepalived_text(params: dict, interface: str) -> str:
    peers = [host for host in (backend.rpartition(":")[0].strip("[]") for backend in params["backends"]) if host != params["address"]]
    lines = "\n".join(f"        {peer}" for peer in peers)
    unicast = f"    unicast_src_ip {params['address']}\n    unicast_peer {{\n{lines}\n    }}\n" if peers else ""
    return f"""\
# Written by clusterwright.
global_defs {{
    script_user root
    enable_script_security
    # Whoever missed the news of a move hears it again.
    vrrp_garp_master_refresh 30
}}

vrrp_script alive {{
    script "{CHECK} alive"
    interval 1
    timeout 3
    fall 3
    rise 1
}}

vrrp_script serves {{
    script "{CHECK} serves"
    interval 1
    timeout 3
    fall 3
    rise 1
    weight -50
}}

vrrp_instance kubernetes {{
    # All are equal: the address moves only away from one that is worse.
    state BACKUP
    priority 100
    advert_int 1
    interface {interface}
    virtual_router_id {params["router_id"]}
{unicast}    virtual_ipaddress {{
        {params["virtual_ip"]}/32 dev {interface}
    }}
    track_script {{
        alive
        serves
    }}
}}
"""


def authority(params: dict) -> str:
    if params["ca"]:
        return params["ca"]
    for path in (params["ca_path"], CA):
        try:
            with open(path, encoding="ascii") as source:
                return source.read()
        except OSError:
            continue
    raise StepFailure("InvalidVariables", f"there is no {params['ca_path']} on this machine: run the step of its API server first")


def is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def check_variables(params: dict) -> str:
    """The interface."""
    for program in ("haproxy", "keepalived"):
        if not find(program):
            raise StepFailure("PackageNotFound", f"{program} is not installed: run the bootstrap-os step")
    for backend in [f"{params['virtual_ip']}:{params['port']}", *params["backends"]]:
        host, _colon, port = backend.rpartition(":")
        if not is_address(host.strip("[]")) or not port.isdigit():
            raise StepFailure("InvalidVariables", f"{backend!r} is no address with a port")
    if not params["backends"]:
        raise StepFailure("InvalidVariables", "kube_apiserver_backends is empty: give the control planes as host:port")
    interface = params["interface"] or interface_of(params["address"])
    if interface not in os.listdir("/sys/class/net"):
        raise StepFailure("AddressNotFound", f"no interface {interface or 'with the address ' + params['address']} is here")
    return interface


def check_peers(params: dict, interface: str) -> None:
    """Who holds the address must know this machine, or this one would take it as well."""
    virtual = params["virtual_ip"]
    if virtual in addresses():
        return
    holders = arp.who_has(interface, [virtual], 0.5).get(virtual)
    if holders and not vrrp.announced(params["router_id"], LISTEN_SECONDS):
        raise StepFailure(
            "LoadBalancerPeersUnaware",
            f"{virtual} is held by {arp.names(interface, holders, params['endpoint_neighbours'])}, which does not announce it to this machine:"
            " run load-balancer on the other control planes first, with this one among kube_apiserver_backends",
        )


def wait_for_holder(params: dict, interface: str) -> None:
    virtual = params["virtual_ip"]
    wait(
        lambda: virtual in addresses() or arp.who_has(interface, [virtual], 0.5),
        params["timeout_seconds"],
        "LoadBalancerNotReady",
        lambda: f"nobody holds {virtual}{units.journal(KEEPALIVED_UNIT)}",
    )


def wait_for_api(params: dict) -> None:
    context = believing(cafile=CA)
    target = ("https", params["virtual_ip"], params["port"], params["health_path"])
    said = ""

    def answers() -> bool:
        nonlocal said
        well, said = healthz.answer(target, context)
        return well

    wait(
        answers,
        params["timeout_seconds"],
        "LoadBalancerNotReady",
        lambda: f"the API does not answer at {params['virtual_ip']}:{params['port']}: {said}",
    )


def work(call) -> dict:
    params, check = call.params, call.check_mode
    interface = check_variables(params)
    record = json.dumps({"virtual_ip": params["virtual_ip"], "interface": interface}) + "\n"
    balancer = [
        {"path": CA, "content": authority(params)},
        {"path": HAPROXY, "content": haproxy_text(params)},
        {"path": f"/etc/systemd/system/{HAPROXY_UNIT}", "content": HAPROXY_UNIT_TEXT},
    ]
    address = [
        # First: a reset finds the address by it.
        {"path": membership.LOAD_BALANCER, "content": record},
        {"path": CHECK, "content": check_text(params["health_port"]), "mode": "0755"},
        {"path": KEEPALIVED, "content": keepalived_text(params, interface)},
        {"path": f"/etc/systemd/system/{KEEPALIVED_UNIT}", "content": KEEPALIVED_UNIT_TEXT},
    ]
    if not check and units.state(KEEPALIVED_UNIT).get("ActiveState") != "active":
        check_peers(params, interface)
    written = files.write_all(address, check) + files.write_all(balancer, check) + selinux.allow(BOOLEANS, check)
    if not check:
        tried = attempt("haproxy", "-c", "-q", "-f", HAPROXY)
        if not tried.ok:
            raise StepFailure("InvalidVariables", f"haproxy refuses its configuration: {tried.said}")
    ours = [entry["path"] for entry in balancer]
    others = [entry["path"] for entry in address]
    acted = units.ensure_read(HAPROXY_UNIT, any(path in ours for path in written), check, ours)
    acted = units.ensure_read(KEEPALIVED_UNIT, any(path in others for path in written), check, others) or acted
    if not check:
        wait_for_holder(params, interface)
    # This machine serves it by now; before that, the endpoint may have nobody behind it.
    if membership.read(membership.KUBEADM) or units.exists(karmada.API_SERVER_UNIT):
        wait_for_api(params)
    said = f"{params['virtual_ip']}:{params['port']}"
    if written:
        said += f": differing: {', '.join(written)}"
    elif acted:
        said += ": a service did not run, or not with what is in its files"
    return {"changed": bool(written) or acted, "written": written, "msg": said}
