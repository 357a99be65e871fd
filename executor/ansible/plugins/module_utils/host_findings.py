# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Preflight checks of what a distribution or an administrator configured, and what would undo what our steps set."""

from __future__ import annotations

import fnmatch
import json
import os
import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    distribution_packages,
    firewalld,
    karmada,
    machine,
    membership,
    packet_filter,
    runtime,
    selinux,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt, find
from ansible_collections.clusterwright.cluster.plugins.module_utils.finding import error, has_pods, warning

UNITS = ("kubelet.service", "containerd.service", "etcd.service")
# Later ones lose against a file of the same name in an earlier one.
SYSCTL_FOLDERS = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d")
OUR_SYSCTL = "90-clusterwright.conf"
# What machines of each role take from others; docs/operations/network.md has the same.
OPEN = {
    "control-plane": "TCP 6443 and 10250",
    "etcd": "TCP 2379 and 2380",
    "worker": "TCP 10250, TCP and UDP 30000-32767",
    "karmada-control-plane": f"TCP {', '.join(map(str, karmada.SERVING[:-1]))} and {karmada.SERVING[-1]}",
}
SHARED_UNITS = ("etcd.service",)
ZRAM_CONFIGURATIONS = ("/etc/systemd/zram-generator.conf", "/usr/lib/systemd/zram-generator.conf", "/etc/default/zramswap")
ZRAM_UNITS = ("/etc/systemd/system/multi-user.target.wants/zramswap.service", "/etc/systemd/system/swap.target.wants/zramswap.service")


def drop_ins(params: dict) -> list:
    """Files that change units of ours: a package's 10-kubeadm.conf has another kubelet start, with other arguments."""
    found = []
    seen = set()
    for unit in UNITS if has_pods(params) else SHARED_UNITS:
        for folder in runtime.UNIT_FOLDERS:
            try:
                names = sorted(name for name in os.listdir(f"{folder}/{unit}.d") if name.endswith(".conf"))
            except OSError:
                continue
            for name in names:
                path = f"{folder}/{unit}.d/{name}"
                content = machine.text(path)
                if runtime.ours(path) or not content or os.path.realpath(path) in seen:
                    continue
                seen.add(os.path.realpath(path))
                if re.search(r"^\s*ExecStart\s*=", content, re.MULTILINE):
                    hint = f"remove it, or the package that it is of ({distribution_packages.hints().OWNER} {path} names it), then systemctl daemon-reload"
                    found.append(error("unit-drop-in", f"{path} changes how {unit} is started: {hint}"))
                else:
                    found.append(warning("unit-drop-in", f"{path} changes {unit}: make sure that it is meant to"))
    return found


def sysctl_files() -> list:
    """Files that are applied after ours at each boot, in their order."""
    paths: dict = {}
    for folder in SYSCTL_FOLDERS:
        try:
            names = [name for name in os.listdir(folder) if name.endswith(".conf")]
        except OSError:
            continue
        for name in names:
            paths.setdefault(name, f"{folder}/{name}")
    after = [paths[name] for name in sorted(paths) if name > OUR_SYSCTL]
    # sysctl --system reads it at the end, whether or not a link in sysctl.d leads to it.
    return [path for path in after if os.path.realpath(path) != "/etc/sysctl.conf"] + ["/etc/sysctl.conf"]


def settings(content: str) -> list:
    """(name or pattern, value) of the lines that set something."""
    found = []
    for line in content.splitlines():
        name, equals, value = line.strip().partition("=")
        name = name.strip().removeprefix("-").strip()
        if equals and name and not name.startswith(("#", ";")):
            # A slash may stand for a dot, and then a dot for a slash, as in the name of an interface.
            if "/" in name.partition(".")[0]:
                name = name.translate(str.maketrans("./", "/."))
            found.append((name, value.strip()))
    return found


def sysctl(params: dict) -> list:
    """Values of ours that a later file would set otherwise at the next boot."""
    found = []
    for path in sysctl_files():
        for pattern, value in settings(machine.text(path)):
            for name, wanted in params["sysctl"].items():
                enough = value == str(wanted) or (value.isdigit() and str(wanted).isdigit() and int(value) > int(wanted) > 1)
                if fnmatch.fnmatchcase(name, pattern) and not enough:
                    found.append(
                        error(
                            "sysctl-overridden",
                            f"{path} sets {name} to {value} at each boot, after {OUR_SYSCTL}, and {wanted} is needed: remove that line",
                        )
                    )
    return found


def zram(params: dict) -> list:
    """Swap in memory, which comes back at each boot: the kubelet would not start any more."""
    if machine.container() or not has_pods(params):
        return []
    signs = [name for name in machine.swaps() if name.startswith("/dev/zram")]
    signs += [path for path in ZRAM_CONFIGURATIONS[:2] if re.search(r"^\s*\[zram", machine.text(path), re.MULTILINE)]
    signs += [path for path in ZRAM_UNITS if os.path.lexists(path)]
    if not signs:
        return []
    return [
        error(
            "zram-swap",
            f"swap in compressed memory comes back at each boot ({', '.join(signs)}), and the kubelet does not start with swap:"
            " systemctl disable --now zramswap.service, or an empty file /etc/systemd/zram-generator.conf, then reboot",
        )
    ]


def dropping_chains() -> list:
    """Chains of others that drop what no rule of theirs accepts, of packets for or through the machine."""
    if not find("nft"):
        return []
    output = attempt("nft", "--json", "list", "chains")
    try:
        known = json.loads(output.out).get("nftables", []) if output.ok else []
    except ValueError:
        return []
    found = []
    for entry in known:
        chain = entry.get("chain", {})
        of_cluster = chain.get("table") in packet_filter.NFT_TABLES or packet_filter.CHAIN.match(chain.get("name", ""))
        if chain.get("policy") == "drop" and chain.get("hook") in ("input", "forward") and not of_cluster:
            found.append(f"chain {chain['family']} {chain['table']} {chain['name']} (policy drop)")
    return found


def accepted(params: dict) -> list:
    """What others send to a machine of these roles."""
    protocols = ["TCP 22"] + [ports for role, ports in OPEN.items() if role in params["roles"]]
    if params["virtual_ip"]:
        protocols.append("VRRP (IP protocol 112)")
    return protocols


def firewall(params: dict) -> list:
    """A firewall that is at work: it drops what nodes and Pods say to each other, or kube-proxy's rules when it is loaded again."""
    found = []
    by_firewalld = firewalld.running()
    if by_firewalld:
        found.append("firewalld: systemctl disable --now firewalld")
    if re.search(r"^\s*ENABLED\s*=\s*[\"']?yes", machine.text("/etc/ufw/ufw.conf"), re.MULTILINE | re.IGNORECASE):
        found.append("ufw: ufw disable")
    found += dropping_chains()
    if not found:
        return []
    kind = warning if membership.belongs_to(params["identity"]) else error
    commands = f"; with firewalld: {' && '.join(firewalld.commands(params))}" if by_firewalld else ""
    pods = f", accept and forward all that Pods ({params['pod_cidr']}) send and get" if has_pods(params) else ""
    return [
        kind(
            "firewall",
            f"a firewall is at work on the machine ({'; '.join(found)}): turn it off; or let it accept from the cluster's machines and its"
            f" clients {', '.join(accepted(params))}{pods}, and ignore this finding by its name{commands}",
        )
    ]


def labels(_params: dict) -> list:
    """SELinux: refused where its policy knows no containers, and else a warning, since nothing here was run under it."""
    mode = selinux.mode()
    if mode == "enforcing" and not selinux.knows_containers():
        return [
            error(
                "selinux",
                f"SELinux is enforcing, and its policy knows no containers: on the RHEL family dnf install {selinux.CONTAINER_POLICY}"
                " (bootstrap-os does); elsewhere set SELINUX=permissive in /etc/selinux/config, then setenforce 0",
            )
        ]
    if mode and selinux.knows_containers():
        return [
            warning(
                "selinux-not-tested",
                f"SELinux is {mode}: labels and booleans are written for it and not tested: if something is refused, ausearch -m avc -ts"
                " recent names it, and setenforce 0 lets it be until the next boot",
            )
        ]
    return []
