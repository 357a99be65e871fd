# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Rules and sets of the packet filter that a cluster's network leaves: kube-proxy's and our own, Calico's, Cilium's and Flannel's."""

from __future__ import annotations

import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import ipset
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt, find as program
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

# In whatever family.
NFT_TABLES = frozenset(("kube-proxy", "clusterwright", "calico", "flannel-ipv4", "flannel-ipv6"))
CHAIN = re.compile(r"(?:KUBE-|CNI-|cali-|CILIUM_|OLD_CILIUM_|FLANNEL-)")
# Rules in the machine's own chains that jump to none of these.
COMMENT = re.compile(r'--comment "?(?:cali:|cilium[ :-]|flanneld )')
SETS = ("cali4", "cali6", "cilium_", "KUBE-")


def nft_tables() -> list:
    """(family, name)."""
    if not program("nft"):
        return []
    found = [line.split()[1:] for line in attempt("nft", "list", "tables").out.splitlines() if line.startswith("table ")]
    return [(family, name) for family, name in (entry for entry in found if len(entry) == 2) if name in NFT_TABLES]


def commands() -> list:
    """iptables by each way into the kernel that is in use: a plugin's image chooses its own. The older one is only asked where it has
    tables, since asking makes them."""
    found = []
    for family, names in (("iptables", "ip_tables_names"), ("ip6tables", "ip6_tables_names")):
        ways = [f"{family}-nft"] if program(f"{family}-nft-save") else [family]
        if text(f"/proc/net/{names}") and program(f"{family}-legacy-save"):
            ways.append(f"{family}-legacy")
        found += [way for way in ways if program(f"{way}-save")]
    return found


def of_cluster(line: str) -> bool:
    """Whether a line of iptables-save is a chain of a cluster's, or a rule in or to one."""
    if line.startswith(":"):
        return bool(CHAIN.match(line[1:]))
    if not line.startswith("-A"):
        return False
    return bool(COMMENT.search(line)) or any(CHAIN.match(word) for word in line.split()[1:])


def rules() -> dict:
    """Lines of a cluster's by command, where there are any."""
    found = {command: [line for line in attempt(f"{command}-save").out.splitlines() if of_cluster(line)] for command in commands()}
    return {command: lines for command, lines in found.items() if lines}


def sets() -> list:
    return [name for name in ipset.names() if name.startswith(SETS)]


def find() -> list:
    found = [f"nft table {family} {name}" for family, name in nft_tables()]
    for command, lines in rules().items():
        first = lines[0].split()
        name = first[0][1:] if lines[0].startswith(":") else f"in {first[1]}"
        found.append(f"{command} rules of a cluster ({len(lines)}, the first {name})")
    names = sets()
    if names:
        found.append(f"IP sets {', '.join(names[:4])}{f' and {len(names) - 4} more' if len(names) > 4 else ''}")
    return found


def remove() -> None:
    for family, name in nft_tables():
        attempt("nft", "delete", "table", family, name)
    for command in rules():
        # In one restore for each table, so no rule refers to nothing.
        kept = [line for line in attempt(f"{command}-save").out.splitlines() if not line.startswith("#") and not of_cluster(line)]
        attempt(f"{command}-restore", stdin="\n".join(kept) + "\n")
    left = sets()
    while left:
        for name in left:
            try:
                ipset.destroy(name)
            except OSError:
                # One that another set names goes in the next round.
                continue
        before, left = left, sets()
        if before == left:
            return
