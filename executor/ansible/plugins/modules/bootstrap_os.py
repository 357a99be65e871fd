#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Brings a machine to the point where the other steps can work."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bootstrap_os
short_description: Installs missing packages and reads what the later steps must know of the machine
description:
  - Installs those of the packages that are missing; the package manager is not called when all are there.
  - Checks that commands run as root.
  - Returns the facts that the operator shows, and ansible_facts.clusterwright_machine for the templates.
options:
  packages:
    description: Names of distribution packages.
    type: list
    elements: str
    default: []
  installer:
    description: A script that installs the packages that it is given, in place of apt with the machine's own sources.
    type: str
    default: ""
  repository:
    description: The environment of that script, which says where packages come from.
    type: dict
    default: {}
  proxy:
    description: The proxy through which packages are downloaded, as C(machine_settings.proxy).
    type: dict
    default: {}
author:
  - Clusterwright developers
"""

import os
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import machine, proxies
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt, find
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

APT = {"DEBIAN_FRONTEND": "noninteractive", "APT_LISTCHANGES_FRONTEND": "none", "NEEDRESTART_MODE": "l"}
LOCK_WAIT = "-oDPkg::Lock::Timeout=120"


def missing(packages: list) -> list:
    """The packages that are not installed."""
    output = attempt("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *packages)
    installed = {line.split()[0] for line in output.out.splitlines() if line.endswith(" installed")}
    return [package for package in packages if package not in installed]


def install(packages: list, installer: str, repository: dict, proxy: dict) -> None:
    """Installs the packages as the installer does, or from the machine's own sources."""
    if not installer:
        install_from_own_sources(packages, {**APT, **proxies.environment(proxy)})
        return
    done = attempt("sh", "-s", "--", *packages, stdin=installer, timeout=600, env={**repository, **proxies.environment(proxy)})
    if not done.ok:
        raise StepFailure("PackageNotFound", f"failed to install {', '.join(packages)} from the bundle: {done.said}")


def install_from_own_sources(packages: list, environment: dict) -> None:
    """Installs the packages, with fresh lists only when the known ones do not do."""
    arguments = ("apt-get", "-q", "-y", LOCK_WAIT, "--no-install-recommends", "install", *packages)
    first = attempt(*arguments, timeout=600, env=environment)
    if first.ok:
        return
    update = attempt("apt-get", "-q", LOCK_WAIT, "update", timeout=300, env=environment)
    second = attempt(*arguments, timeout=600, env=environment)
    if not second.ok:
        why = second.said if update.ok else f"{update.said}\n{second.said}"
        raise StepFailure(
            "PackageNotFound",
            f"failed to install {', '.join(packages)}: {why}\n"
            "Install them by hand, or give this machine a package source that has them",
        )


def work(call) -> dict:
    if os.geteuid() != 0:
        raise StepFailure(
            "NotRoot", f"commands run as uid {os.geteuid()}, not as root: set become on the Host, and let its user use sudo"
        )
    due = []
    if call.params["packages"]:
        if not find("dpkg-query"):
            raise StepFailure("UnsupportedDistribution", "this machine has no dpkg: Debian or Ubuntu is needed")
        due = missing(call.params["packages"])
    if due and not call.check_mode:
        install(due, call.params["installer"], call.params["repository"], call.params["proxy"])
    return {
        "changed": bool(due),
        "installed": due,
        "msg": f"missing: {', '.join(due)}" if due and call.check_mode else "",
        "clusterwright": machine.facts(),
        "ansible_facts": {"clusterwright_machine": machine.relaxations()},
        "time": time.time(),
    }
