# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Routes and routing rules of a cluster's network. Plugins leave theirs behind: Calico the blackhole of a node's Pods, others the way
to other nodes' Pods over the machine's own interface."""

from __future__ import annotations

import ipaddress

from ansible_collections.clusterwright.cluster.plugins.module_utils import links, ranges as pod_ranges
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.iproute import shown

# Ours carry a protocol number of their own, so that they are found again; Felix, Calico's agent, has one, too.
ROUTE_PROTOCOL = "77"
FELIX = "80"
CILIUM_TABLES = ("2004", "2005")
CILIUM_MARKS = ("0x200/0xf00", "0xa00/0xf00")
# Where Cilium puts the rule for the machine's own addresses, which belongs at 0.
MOVED_LOCAL = 100
CALICO_PRIORITY = 99


def destination(route: dict) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """Where a route leads; None for the default."""
    text = route.get("dst", "default")
    return None if text == "default" else ipaddress.ip_network(text, strict=False)


def of_cluster(route: dict, ranges: list) -> bool:
    """Whether a cluster's network added the route; `ranges` are those of this cluster's Pods."""
    if str(route.get("protocol")) in (ROUTE_PROTOCOL, FELIX) or links.of_cluster(route.get("dev", "")):
        return True
    network = destination(route)
    # The kernel's own come with an address, and go with it.
    return network is not None and route.get("protocol") != "kernel" and pod_ranges.within(network, ranges)


def routes() -> list:
    """(family, route) of a cluster's, by their own sign or by the range that was recorded. Those over an interface go with it."""
    ranges = pod_ranges.of_pods()
    found = []
    for family in ("-4", "-6"):
        found += [(family, route) for route in shown(family, "route", "show") if of_cluster(route, ranges)]
        for table in CILIUM_TABLES:
            found += [(family, {**route, "table": table}) for route in shown(family, "route", "show", "table", table)]
    return found


def words(route: dict) -> list:
    """The route as ip takes it."""
    found = [route["type"]] if route.get("type", "unicast") != "unicast" else []
    found.append(route["dst"])
    for key, word in (("gateway", "via"), ("dev", "dev"), ("protocol", "proto"), ("metric", "metric"), ("table", "table")):
        if route.get(key) not in (None, ""):
            found += [word, str(route[key])]
    return found


def rules() -> list:
    """(family, rule) of Cilium's and Calico's."""
    found = []
    for family in ("-4", "-6"):
        known = shown(family, "rule", "show")
        for rule in known:
            mark = f"{rule.get('fwmark', '')}/{rule.get('fwmask', '')}"
            table, priority = str(rule.get("table", "")), rule.get("priority")
            calico = priority == CALICO_PRIORITY and "fwmark" in rule and table.isdigit() and int(table) <= 250
            moved = priority == MOVED_LOCAL and table == "local" and rule.get("src") == "all" and "fwmark" not in rule
            if calico or moved or (mark in CILIUM_MARKS and table in CILIUM_TABLES):
                found.append((family, rule))
    return found


def find() -> list:
    found = [f"route {' '.join(words(route))}" for _family, route in routes()]
    return found + [f"routing rule {rule['priority']} (table {rule.get('table')})" for _family, rule in rules()]


def remove() -> None:
    """After the interfaces: most routes are gone with them."""
    for family, route in routes():
        attempt("ip", family, "route", "delete", *words(route))
    for family, rule in rules():
        priority = str(rule["priority"])
        if rule.get("table") == "local":
            # Never without one: the machine would not hear what is sent to it.
            if not any(other.get("priority") == 0 for other in shown(family, "rule", "show")):
                attempt("ip", family, "rule", "add", "priority", "0", "lookup", "local")
            attempt("ip", family, "rule", "delete", "priority", priority, "lookup", "local")
        else:
            mark = f"{rule['fwmark']}/{rule['fwmask']}" if rule.get("fwmask") else str(rule["fwmark"])
            negated = ["not"] if "not" in rule else []
            attempt("ip", family, "rule", "delete", *negated, "priority", priority, "fwmark", mark, "lookup", str(rule["table"]))
