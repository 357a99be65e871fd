#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Remembers over a reboot that it was ordered."""

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot_mark
short_description: Notes before a reboot which boot it ends, and tells afterwards whether it came and the machine's services are up
description:
  - C(due) in the result says whether the reboot is still to be made. An attempt that was cut short after it finds it done,
    however long the machine took to boot.
extends_documentation_fragment:
  - clusterwright.cluster.arguments.karmada_parts
options:
  moment:
    description: Before the reboot, or after it.
    type: str
    choices: [before, after]
    required: true
  request:
    description: What the reboot is for; attempts at the same have the same. Empty, each order is one of its own.
    type: str
    default: ""
  timeout_seconds:
    description: After it, until the services are up.
    type: int
    default: 180
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils import healthz, karmada_parts, machine, membership, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

BOOT = "/proc/sys/kernel/random/boot_id"


def came(mark: dict, request: str) -> bool:
    """Whether the machine was booted since the mark was made for this request. Boots are compared, no times: one may take long,
    and the machine's clock may jump in it."""
    return mark.get("request") == request and bool(mark.get("boot")) and mark["boot"] != machine.text(BOOT)


def wait_for_services(timeout: float, parts: list) -> None:
    if units.exists("kubelet.service"):
        said = ""

        def well() -> bool:
            nonlocal said
            good, said = healthz.answer(healthz.KUBELET)
            return good

        wait(well, timeout, "KubeletNotHealthy", lambda: f"the kubelet is not up: {said}{units.journal('kubelet.service')}")
    elif units.exists("etcd.service"):
        wait(
            lambda: units.state("etcd.service").get("ActiveState") == "active",
            timeout,
            "EtcdUnhealthy",
            lambda: f"etcd is not up{units.journal('etcd.service')}",
        )
    for part in karmada_parts.to_run(parts):
        karmada_parts.wait_for(part, timeout)


def work(call) -> dict:
    mark = membership.read(membership.REBOOT)
    request = call.params["request"]
    if call.params["moment"] == "before":
        due = not request or mark.get("done") is True or not came(mark, request)
        if due and not call.check_mode:
            membership.save(membership.REBOOT, {"boot": machine.text(BOOT), "request": request, "done": False})
        return {"changed": False, "due": due, "msg": "the reboot is due" if due else "the machine was rebooted already"}
    if not came(mark, request):
        raise StepFailure("NotRebooted", "the machine was not rebooted since this was asked for: the step runs again")
    wait_for_services(call.params["timeout_seconds"], call.params["parts"])
    if not call.check_mode:
        membership.save(membership.REBOOT, {**mark, "done": True})
    return {"changed": False, "msg": "booted, and its services are up"}
