#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Prepares the kernel and the name lookup of a machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: prepare
short_description: Kernel modules, sysctl, swap and the hosts file, each written for the next boot and made true now
description:
  - Changes only what differs. In check mode it tells what would change, which is how the probe reads the values back.
options:
  cluster:
    description: What the machine remembers of its cluster; C(identity) tells clusters apart.
    type: dict
    required: true
  sysctl:
    description: Values by name.
    type: dict
    default: {}
  modules:
    description: Kernel modules to load.
    type: list
    elements: str
    default: []
  configured_sysctl:
    description:
      - Values by name that the cluster's configuration asks for; they go before C(sysctl). One that is not there any more has the value again
        that it had before.
    type: dict
    default: {}
  configured_modules:
    description: Further kernel modules, that the cluster's configuration asks for.
    type: list
    elements: str
    default: []
  swap_off:
    description: Turn swap off, now and for the next boot.
    type: bool
    default: true
  leave_routes:
    description: Let systemd-networkd leave routes alone that it did not make; it is restarted if it runs since before it was told.
    type: bool
    default: false
  hosts:
    description: Lines for /etc/hosts.
    type: list
    elements: str
    default: []
author:
  - Clusterwright developers
"""

import os
import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, host_file, machine, membership, networkd, roots
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

SYSCTL_FILE = "/etc/sysctl.d/90-clusterwright.conf"
# The values that the configured ones had before.
FORMER_FILE = f"{membership.HOME}/sysctl.json"
MODULES_FILE = "/etc/modules-load.d/clusterwright.conf"
# What shows that a module's function is there, also when it is built in.
SIGNS = {"overlay": "overlay", "br_netfilter": "/proc/sys/net/bridge", "nf_conntrack": "/proc/sys/net/netfilter"}


def loaded(name: str) -> bool:
    sign = SIGNS.get(name, "")
    if sign.startswith("/"):
        return os.path.exists(sign)
    if sign and re.search(rf"\b{sign}$", machine.text("/proc/filesystems"), re.MULTILINE):
        return True
    return os.path.exists(f"/sys/module/{name.replace('-', '_')}")


def load_modules(names: list, check: bool) -> list:
    changed = []
    content = "# Written by clusterwright.\n" + "".join(f"{name}\n" for name in names)
    if machine.container():
        # It loads nothing, and has what its host loaded.
        return changed
    if files.write(MODULES_FILE, content, 0o644, check):
        changed.append(MODULES_FILE)
    for name in names:
        if loaded(name):
            continue
        changed.append(f"module {name}")
        if check:
            continue
        output = attempt("modprobe", name)
        if not output.ok:
            raise StepFailure("KernelModuleMissing", f"failed to load the kernel module {name}: {output.said}")
    return changed


def path_of(name: str) -> str:
    return "/proc/sys/" + name.replace(".", "/")


def set_value(name: str, value: object) -> None:
    try:
        with open(path_of(name), "w", encoding="ascii") as target:
            target.write(f"{value}\n")
    except OSError as error:
        raise StepFailure("SysctlRefused", f"failed to set {name} to {value}: {error}") from error


def set_sysctl(values: dict, check: bool) -> list:
    changed = []
    for name, value in sorted(values.items()):
        path = path_of(name)
        current = machine.text(path)
        if current.split() == str(value).split():
            continue
        # A limit that the host of a container set, and set higher, is no difference: only the host may change it.
        if machine.container() and (not os.access(path, os.W_OK) or higher(current, value)):
            continue
        changed.append(f"{name}={value}")
        if not check:
            set_value(name, value)
    return changed


def configure_sysctl(values: dict, ours: dict, check: bool) -> list:
    """Sets what the cluster's configuration asks for, and sets back what it does not ask for any more; nothing, if one is refused."""
    before = membership.read(FORMER_FILE)
    now = {name: " ".join(machine.text(path_of(name)).split()) for name in {*before, *values}}
    # Of what is ours as well, the value that we want is set in any case.
    back = {name: value for name, value in before.items() if name not in values and name not in ours and value}
    wanted = {**back, **{name: " ".join(str(value).split()) for name, value in values.items()}}
    differ = [name for name, value in sorted(wanted.items()) if now[name] != value]
    former = {name: before.get(name, now[name]) for name in values}
    if check:
        return [f"{name}={wanted[name]}" for name in differ] + ([FORMER_FILE] if former != before else [])
    # First what goes, so that an attempt that is cut short knows it still.
    if former != before:
        membership.save(FORMER_FILE, {**former, **before})
    done: list = []
    try:
        for name in differ:
            set_value(name, wanted[name])
            done.append(name)
    except StepFailure:
        for name in done:
            set_value(name, now[name])
        raise
    if former:
        membership.save(FORMER_FILE, former)
    else:
        files.remove(FORMER_FILE)
    return [f"{name}={wanted[name]}" for name in differ]


def write_sysctl(values: dict, check: bool) -> list:
    """Writes the values for the next boot."""
    content = "# Written by clusterwright.\n" + "".join(f"{name} = {value}\n" for name, value in sorted(values.items()))
    return [SYSCTL_FILE] if files.write(SYSCTL_FILE, content, 0o644, check) else []


def sysctl(ours: dict, configured: dict, check: bool) -> list:
    """All values, now and for the next boot; what is configured goes before ours."""
    ours = {name: value for name, value in ours.items() if name not in configured}
    before = machine.text(SYSCTL_FILE)
    # First: what keeps the Pod network puts each value back that is another one than the file has.
    changed = write_sysctl({**ours, **configured}, check)
    try:
        return changed + configure_sysctl(configured, ours, check) + set_sysctl(ours, check)
    except StepFailure:
        if before:
            files.write(SYSCTL_FILE, f"{before}\n")
        raise


def higher(current: str, wanted: object) -> bool:
    return current.isdigit() and str(wanted).isdigit() and int(current) > int(str(wanted)) > 1


def turn_swap_off(check: bool) -> list:
    """Swap devices off, and their lines in fstab commented out. Nothing in a container, whose swap is the host's."""
    if machine.container():
        return []
    changed = []
    if machine.swaps():
        changed.append("swap")
        if not check:
            output = attempt("swapoff", "-a", timeout=300)
            if not output.ok:
                raise StepFailure("SwapStaysOn", f"failed to turn swap off: {output.said}")
    fstab = machine.text("/etc/fstab")
    pattern = re.compile(r"^(?!#)(\S+\s+\S+\s+swap\s.*)$", re.MULTILINE)
    if pattern.search(fstab):
        changed.append("/etc/fstab")
        if not check:
            files.write("/etc/fstab", pattern.sub(r"# clusterwright: \1", fstab) + "\n", 0o644)
    return changed


def work(call) -> dict:
    params, check = call.params, call.check_mode
    changed = []
    if membership.save(membership.CLUSTER, params["cluster"], check):
        changed.append(membership.CLUSTER)
    if roots.record(params["cluster"]["identity"], check):
        changed.append(membership.ROOTS)
    changed += load_modules([*params["modules"], *params["configured_modules"]], check)
    changed += sysctl(params["sysctl"], params["configured_sysctl"], check)
    if params["swap_off"]:
        changed += turn_swap_off(check)
    if params["leave_routes"]:
        # Now, while nothing is here that its restart could take away, such as the endpoint's address.
        changed += networkd.leave_routes(check)
    if host_file.set_lines(params["hosts"], check):
        changed.append(host_file.PATH)
    return {"changed": bool(changed), "differences": changed, "msg": f"set: {', '.join(changed)}" if changed else "nothing to do"}
