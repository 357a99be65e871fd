#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Prepares the kernel and the name lookup of a machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: prepare
short_description: Kernel modules, sysctl, swap, services of the machine and the hosts file, for the next boot and now
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
  configured_authorities:
    description:
      - Certificates of authorities (PEM) that the machine trusts beside its distribution's. A change restarts containerd, which reads them
        when it starts; containers go on.
    type: list
    elements: str
    default: []
  machine_settings:
    description:
      - What the cluster's configuration asks of the machine's services, of C(timeServers), C(dnsServers), C(searchDomains),
        C(authorizedKeys) and C(journal); its other fields are options of their own. What it does not ask for any more is as it was before.
    type: dict
    default: {}
  user:
    description: Whom C(authorizedKeys) let in - the user as whom runs log in.
    type: str
    default: root
  login_keys:
    description: Keys with which the run may have logged in; none of them is taken out of what lets the user in.
    type: list
    elements: str
    default: []
  swap_off:
    description: Turn swap off, now and for the next boot.
    type: bool
    default: true
  leave_routes:
    description:
      - Let systemd-networkd leave routes alone that it did not make; it is restarted if it runs since before it was told. NetworkManager
        leaves the interfaces of Pods alone; it is reloaded.
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

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    distribution_packages,
    files,
    host_file,
    kernel_settings,
    machine,
    machine_settings,
    membership,
    network_manager,
    networkd,
    roots,
    selinux,
    trusted_authorities,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

MODULES_FILE = "/etc/modules-load.d/clusterwright.conf"
# What shows that a module's function is there, also when it is built in.
SIGNS = {"overlay": "overlay", "br_netfilter": "/proc/sys/net/bridge", "nf_conntrack": "/proc/sys/net/netfilter"}


def loaded(name: str) -> bool:
    sign = SIGNS.get(name, "")
    if sign.startswith("/"):
        return os.path.exists(sign)
    if sign and re.search(rf"\b{sign}$", machine.text("/proc/filesystems"), re.MULTILINE):
        return True
    return os.path.exists(f"/sys/module/{name.replace('-', '_')}") or built_in(name)


def built_in(name: str) -> bool:
    """Whether the kernel itself has it: one without parameters shows nowhere else."""
    known = machine.text(f"/lib/modules/{os.uname().release}/modules.builtin")
    return f"/{name.replace('-', '_')}.ko" in known.replace("-", "_")


def module_hint() -> str:
    """The packages that have the kernel's modules, where an installation may have come without."""
    adapter = distribution_packages.hints()
    packages = " ".join(f"{package}-{os.uname().release}" for package in adapter.KERNEL_MODULES)
    return f": {adapter.INSTALL} {packages}, or boot the kernel whose modules are installed" if packages else ""


def load_modules(ours: list, configured: list, check: bool) -> list:
    changed = []
    names = [*ours, *(name for name in configured if name not in ours)]
    content = "# Written by clusterwright.\n" + "".join(f"{name}\n" for name in names)
    if machine.container():
        # It loads nothing, and has what its host loaded.
        missing = [name for name in configured if not loaded(name)]
        if missing:
            raise StepFailure("KernelModuleMissing", f"this machine is a container: its host has to load {', '.join(missing)}")
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
            raise StepFailure("KernelModuleMissing", f"failed to load the kernel module {name}: {output.said}{module_hint()}")
        if not loaded(name):
            raise StepFailure("KernelModuleMissing", f"{name} is another name of a kernel module: give the one that lsmod shows")
    return changed


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
    changed += selinux.label_directories(check)
    changed += load_modules(params["modules"], params["configured_modules"], check)
    changed += kernel_settings.apply(params["sysctl"], params["configured_sysctl"], check)
    changed += trusted_authorities.apply(params["configured_authorities"], check)
    changed += machine_settings.apply(params["machine_settings"], params["user"], params["login_keys"], check)
    if params["swap_off"]:
        changed += turn_swap_off(check)
    if params["leave_routes"]:
        # Now, while nothing is here that its restart could take away, such as the endpoint's address.
        changed += networkd.leave_routes(check)
        changed += network_manager.leave_interfaces(check)
    if host_file.set_lines(params["hosts"], check):
        changed.append(host_file.PATH)
    verb = "differing" if check else "set"
    return {"changed": bool(changed), "differences": changed, "msg": f"{verb}: {', '.join(changed)}" if changed else "nothing to do"}
