#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The balancer of a machine of a Karmada control plane."""

from __future__ import annotations

DOCUMENTATION = r"""
module: karmada_balancer
short_description: haproxy on this machine alone, which gives connections to what serves on any machine of a Karmada control plane
description:
  - A unit of ours with a configuration of ours; what the distribution's package brings is left alone.
  - A configuration is tried before it takes the place of the one that is there. haproxy reads it again, and connections stay.
  - TLS is passed on as it comes. A machine that makes no handshake gets no connections, and those that it had are closed.
options:
  digest:
    description: What the balancer is made of, as its unit says it.
    type: str
    required: true
  frontends:
    description: Where it listens, of 127.0.0.1 alone, and who is behind it.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: What serves there.
        type: str
        required: true
      port:
        description: The port.
        type: int
        required: true
      backends:
        description: ADDRESS:PORT of each machine.
        type: list
        elements: str
        required: true
  timeout_seconds:
    description: Until it listens.
    type: int
    default: 30
author:
  - Clusterwright developers
"""

import ipaddress
import os
import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, karmada, listeners, selinux, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt, find
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

CONFIGURATION = f"{karmada.BALANCER}/haproxy.cfg"
# Without it SELinux lets haproxy use a few ports alone.
BOOLEANS = ("haproxy_connect_any",)
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,62}[a-z0-9])?")

UNIT_BODY = f"""\
[Unit]
Description=Karmada control plane: connections of this machine's API server
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
ExecStart=/usr/sbin/haproxy -Ws -f {CONFIGURATION} -p /run/clusterwright-karmada-balancer.pid
ExecReload=/usr/sbin/haproxy -c -q -f {CONFIGURATION}
ExecReload=/bin/kill -USR2 $MAINPID
KillMode=mixed
Restart=always
RestartSec=1
SuccessExitStatus=143
LimitNOFILE=65536

[Install]
WantedBy=multi-user.target
"""

HEAD = """\
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
    balance leastconn
    # A handshake says that it serves; whose certificate that is, is the API server's to ask.
    default-server check check-ssl verify none inter 1s fastinter 500ms downinter 1s rise 1 fall 2 on-marked-down shutdown-sessions
"""


def check_address(text: str) -> None:
    host, _colon, port = text.rpartition(":")
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        port = ""
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise StepFailure("InvalidVariables", f"karmada_balancer.frontends: {text!r} is no address with a port")


def check_variables(params: dict) -> None:
    if not find("haproxy"):
        raise StepFailure("PackageNotFound", "haproxy is not installed: run the bootstrap-os step")
    if not params["frontends"]:
        raise StepFailure("InvalidVariables", "karmada_balancer.frontends is empty: give what the API server asks")
    ports = [frontend["port"] for frontend in params["frontends"]]
    for frontend in params["frontends"]:
        if not NAME.fullmatch(frontend["name"]):
            raise StepFailure("InvalidVariables", f"karmada_balancer.frontends: {frontend['name']!r} is no name of a component")
        check_address(f"127.0.0.1:{frontend['port']}")
        if ports.count(frontend["port"]) > 1:
            raise StepFailure("InvalidVariables", f"karmada_balancer.frontends: port {frontend['port']} is given twice")
        if not frontend["backends"]:
            raise StepFailure("InvalidVariables", f"karmada_balancer.frontends: {frontend['name']} has no backends")
        for backend in frontend["backends"]:
            check_address(backend)


def section(frontend: dict) -> str:
    """A frontend with its backends."""
    label = re.compile(r"[^A-Za-z0-9.]")
    servers = "\n".join(f"    server {label.sub('-', backend).strip('-')} {backend}" for backend in frontend["backends"])
    return f"\nlisten {frontend['name']}\n    bind 127.0.0.1:{frontend['port']}\n{servers}\n"


def haproxy_text(params: dict) -> str:
    return HEAD + "".join(map(section, params["frontends"]))


def try_configuration(content: str) -> None:
    """Has haproxy look at another configuration before it is that of the service."""
    if files.text(CONFIGURATION) == content:
        return
    os.makedirs(karmada.BALANCER, mode=0o755, exist_ok=True)
    new = f"{CONFIGURATION}.new"
    files.write(new, content)
    try:
        tried = attempt("haproxy", "-c", "-f", new)
    finally:
        files.remove(new)
    if not tried.ok:
        raise StepFailure("InvalidVariables", f"haproxy refuses its configuration, and has the former one: {tried.said}")


def wait_for_listeners(params: dict) -> None:
    silent: list = []

    def listens() -> bool:
        silent[:] = [str(frontend["port"]) for frontend in params["frontends"] if not listeners.addresses(frontend["port"])]
        return not silent

    wait(
        listens,
        params["timeout_seconds"],
        "ServiceFailed",
        lambda: f"{karmada.BALANCER_UNIT} does not listen on port {', '.join(silent)}{units.journal(karmada.BALANCER_UNIT)}",
    )


def work(call) -> dict:
    params, check = call.params, call.check_mode
    check_variables(params)
    wanted = [
        {"path": CONFIGURATION, "content": haproxy_text(params)},
        {"path": karmada.unit_path(karmada.BALANCER_UNIT), "content": karmada.unit_text(params["digest"], UNIT_BODY)},
    ]
    if not check:
        karmada.take()
        try_configuration(wanted[0]["content"])
    written = files.write_all(wanted, check) + selinux.allow(BOOLEANS, check)
    acted = units.ensure_read(karmada.BALANCER_UNIT, bool(written), check, [entry["path"] for entry in wanted])
    if not check:
        wait_for_listeners(params)
    said = "nothing to do"
    if written:
        said = f"differing: {', '.join(written)}" if check else f"written: {', '.join(written)}"
    elif acted:
        said = "it did not run, or not with what is in its files"
    return {"changed": bool(written) or acted, "written": written, "msg": f"{karmada.BALANCER_UNIT}: {said}"}
