# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Parameters of the kernel: those that a node needs, and those that the cluster's configuration asks for, which have the value again that
they had before when it does not ask for them any more."""

from __future__ import annotations

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, machine, membership
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

SYSCTL_FILE = "/etc/sysctl.d/90-clusterwright.conf"
# The values that the configured ones had before.
FORMER_FILE = f"{membership.HOME}/sysctl.json"


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


def apply(ours: dict, configured: dict, check: bool) -> list:
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


def set_back() -> None:
    """Sets back what was configured, as far as that goes: the machine leaves its cluster."""
    for name, value in membership.read(FORMER_FILE).items():
        if not value:
            continue
        try:
            set_value(name, value)
        except StepFailure:
            # What set it may be gone with the cluster.
            continue
