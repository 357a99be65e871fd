# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""BPF programs and maps that Calico and Cilium leave: pinned in the BPF file system, or attached to the machine's own interfaces,
where they would go on deciding about packets."""

from __future__ import annotations

import json
import os
import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import iproute, links, removal
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt, find as program

FOLDERS = ("/sys/fs/bpf", "/sys/fs/bpf/tc", "/sys/fs/bpf/tc/globals", "/sys/fs/bpf/xdp", "/sys/fs/bpf/xdp/globals")
PIN = re.compile(r"(?:cilium|cali)")
PROGRAM = re.compile(r"(?:cil_|cilium|cali_|calico)")


def pins() -> list:
    """Paths of pinned objects, or of whole directories of them."""
    found = []
    for folder in FOLDERS:
        try:
            found += [f"{folder}/{name}" for name in sorted(os.listdir(folder)) if PIN.match(name)]
        except OSError:
            continue
    return found


def interfaces() -> list:
    """The machine's own: a cluster's go with what is attached to them."""
    try:
        return sorted(name for name in os.listdir("/sys/class/net") if not links.of_cluster(name))
    except OSError:
        return []


def filters() -> list:
    """(interface, direction, preference) of programs that look at packets."""
    found = []
    if not program("tc"):
        return found
    for name in interfaces():
        for direction in ("ingress", "egress"):
            output = attempt("tc", "-json", "filter", "show", "dev", name, direction)
            try:
                known = json.loads(output.out) if output.ok and output.out.strip() else []
            except ValueError:
                continue
            for entry in known:
                what = f"{(entry.get('options') or {}).get('bpf_name', '')} {((entry.get('options') or {}).get('prog') or {}).get('name', '')}"
                if any(PROGRAM.match(word) for word in what.split()):
                    found.append((name, direction, str(entry["pref"])))
    return sorted(set(found))


def early() -> list:
    """Interfaces with a program in front of everything else (XDP)."""
    found = []
    for link in iproute.shown("-details", "link", "show"):
        xdp = link.get("xdp") or {}
        programs = [xdp.get("prog") or {}] + [one.get("prog") or {} for one in xdp.get("attached", [])]
        if any(PROGRAM.match(one.get("name", "")) for one in programs):
            found.append(link["ifname"])
    return found


def find() -> list:
    found = [f"BPF pin {path}" for path in pins()]
    found += [f"BPF filter on {name} ({direction})" for name, direction, _preference in filters()]
    return found + [f"XDP program on {name}" for name in early()]


def remove() -> None:
    for name, direction, preference in filters():
        attempt("tc", "filter", "delete", "dev", name, direction, "pref", preference)
    for name in early():
        for way in ("xdpdrv", "xdpgeneric", "xdpoffload", "xdp"):
            attempt("ip", "link", "set", "dev", name, way, "off")
    for path in pins():
        removal.remove(path)
