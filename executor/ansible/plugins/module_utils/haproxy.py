# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""haproxy as we run it: what all of its configurations begin with, and its unit. What the distribution's package brings is left alone."""

from __future__ import annotations

# Without it SELinux lets haproxy use a few ports alone.
BOOLEAN = "haproxy_connect_any"

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
"""


def unit_body(description: str, configuration: str, pid: str) -> str:
    """A unit without its head. A reload tries the configuration first, and ends no connection."""
    return f"""\
[Unit]
Description={description}
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
ExecStart=/usr/sbin/haproxy -Ws -f {configuration} -p {pid}
ExecReload=/usr/sbin/haproxy -c -q -f {configuration}
ExecReload=/bin/kill -USR2 $MAINPID
KillMode=mixed
Restart=always
RestartSec=1
SuccessExitStatus=143
LimitNOFILE=65536

[Install]
WantedBy=multi-user.target
"""
