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
    description:
      - Names of distribution packages, Debian's. Where packages are RHEL's, those that have another name there are meant by it.
    type: list
    elements: str
    default: []
  installer:
    description: A script that installs the packages that it is given, in place of apt with the machine's own sources. It fails where packages are not apt's.
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

from ansible_collections.clusterwright.cluster.plugins.module_utils import distribution_packages, machine, proxies, selinux
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


def install(adapter, packages: list, installer: str, repository: dict, proxy: dict) -> None:
    """Installs the packages as the installer does, or from the machine's own sources."""
    environment = proxies.environment(proxy)
    if not installer:
        wrong = adapter.install(packages, environment)
        if wrong:
            raise StepFailure(
                "PackageNotFound",
                f"failed to install {', '.join(packages)}: {wrong}\n"
                "Install them by hand, or give this machine a package source that has them",
            )
        return
    if not distribution_packages.has_apt():
        raise StepFailure(
            "PackageNotFound",
            f"{', '.join(packages)} missing, and spec.artifacts.osPackages brings packages for apt alone: on this machine"
            f" {adapter.INSTALL} {' '.join(packages)} by hand, or take the field back, so that they come from its own sources",
        )
    done = attempt("sh", "-s", "--", *packages, stdin=installer, timeout=600, env={**repository, **environment})
    if not done.ok:
        raise StepFailure("PackageNotFound", f"failed to install {', '.join(packages)} from the bundle: {done.said}")


def wanted(adapter, packages: list) -> list:
    """The packages by their names here, and what the machine itself needs."""
    return adapter.names(packages) + selinux.packages(adapter)


def work(call) -> dict:
    if os.geteuid() != 0:
        raise StepFailure(
            "NotRoot", f"commands run as uid {os.geteuid()}, not as root: set become on the Host, and let its user use sudo"
        )
    due = []
    if call.params["packages"]:
        adapter = distribution_packages.adapter()
        due = adapter.missing(wanted(adapter, call.params["packages"]))
    if due and not call.check_mode:
        install(adapter, due, call.params["installer"], call.params["repository"], call.params["proxy"])
    return {
        "changed": bool(due),
        "installed": due,
        "msg": f"missing: {', '.join(due)}" if due and call.check_mode else "",
        "clusterwright": machine.facts(),
        "ansible_facts": {"clusterwright_machine": machine.relaxations()},
        "time": time.time(),
    }
