#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Gives this machine's kubelet another configuration."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubelet_configuration
short_description: The kubelet has the settings given and works with them, or has its former configuration again
description:
  - Writes the patches, and has kubeadm make the kubelet's configuration of the cluster's own and of them. The kubelet is restarted only if
    its file is another one then.
  - A kubelet that does not come up, or keeps ending, gets its former file and patches back. If it works with them, the step fails with
    ConfigurationRefused and the kubelet's last words.
  - An attempt that was cut short is made again; what was proved before it is what is put back.
  - A machine that kubeadm has not made a node yet is left alone; it gets the settings when it becomes one.
options:
  identity:
    description: Identity of the cluster for which kubeadm succeeded here, if it did.
    type: str
    required: true
  settings:
    description: The part of the patches that the cluster's configuration asks for, in the words of KubeletConfiguration.
    type: dict
    default: {}
  patches:
    description: Content of this machine's patches by the names of their files.
    type: dict
    default: {}
  program:
    description: The kubelet's program.
    type: path
    default: /usr/local/bin/kubelet
  timeout_seconds:
    description: For kubeadm, and again until the kubelet is well.
    type: int
    default: 300
extends_documentation_fragment:
  - clusterwright.cluster.arguments.node
author:
  - Clusterwright developers
"""

import json
import re
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    api,
    files,
    healthz,
    kubeadm_config,
    kubeadm_program,
    kubelet,
    manifest_backups,
    membership,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

# A kubelet serves /healthz before it has started all that may fail.
QUIET_SECONDS = 10
# Of one that keeps ending, so many starts are enough.
MOST_STARTS = 4
# Which CPUs the kubelet gave to which container. It does not start beside what another policy, or one with other CPUs, noted.
CPU_STATE = "/var/lib/kubelet/cpu_manager_state"
# As klog marks an error, and what the kubelet says when it gives up.
COMPLAINT = re.compile(r"^[EF]\d{4} |command failed|^Error: |^panic: ")
JOURNAL_LINES = 120


def put(path: str, content: str | None) -> None:
    if content is None:
        files.remove(path)
    else:
        files.write(path, content)


def last_words() -> str:
    """Why the kubelet ended, as far as its journal tells."""
    output = attempt("journalctl", "--no-pager", "--quiet", "-o", "cat", "-n", str(JOURNAL_LINES), "-u", kubelet.UNIT)
    lines = [line.strip() for line in output.out.splitlines() if line.strip()]
    complaints = list(dict.fromkeys(line for line in lines if COMPLAINT.search(line)))
    return "\n".join(line[:600] for line in (complaints or lines)[-3:])


class Attempt:
    """One attempt to give the kubelet other settings."""

    def __init__(self, params: dict) -> None:
        self.params = params
        self.patches = kubelet.patch_files(params["patches"])
        self.client = Api(api.KUBELET)
        self.node = f"/api/v1/nodes/{params['node_name']}"

    def keep_former(self) -> dict:
        """What is put back if the kubelet does not work with what is new; of an attempt that was cut short, what was there before it."""
        former = membership.read(kubelet.FORMER)
        if not former:
            former = {"config": files.text(kubelet.CONFIG), "patches": {entry["path"]: files.text(entry["path"]) for entry in self.patches}}
            membership.save(kubelet.FORMER, former)
        return former

    def render(self) -> None:
        """Has kubeadm make the kubelet's configuration anew."""
        files.write_all(self.patches)
        configuration = {
            "apiVersion": "kubeadm.k8s.io/v1beta4",
            "kind": "UpgradeConfiguration",
            "node": {"patches": {"directory": kubelet.PATCHES}},
        }
        words = ["upgrade", "node", "phase", "kubelet-config"]
        kubeadm_program.run(words, json.dumps(configuration), self.params["node_name"], self.params["timeout_seconds"])
        manifest_backups.prune()

    def restart(self, before: str) -> None:
        """Restarts the kubelet, if it does not run with what is in its files."""
        after = files.text(kubelet.CONFIG) or ""
        policy = kubeadm_config.scalar(after, "cpuManagerPolicy") or "none"
        noted = membership.read(CPU_STATE).get("policyName", policy)
        if noted != policy or (policy == "static" and before != after):
            units.systemctl("stop", kubelet.UNIT, what=f"stop {kubelet.UNIT}")
            files.remove(CPU_STATE)
        units.ensure(kubelet.UNIT, restart=before != after, reads=(self.params["program"], *kubelet.READS))

    def prove(self, was_ready: bool) -> None:
        """Returns once the kubelet was well for a while without a restart, and its Node is Ready if it was."""
        starts: list = []
        said, since = "", time.monotonic()

        def is_well() -> bool:
            nonlocal said, since
            well, said = healthz.answer(healthz.KUBELET)
            start = units.state(kubelet.UNIT).get("InvocationID", "")
            if start not in starts:
                starts.append(start)
                since = time.monotonic()
            if not well:
                since = time.monotonic()
            if len(starts) > MOST_STARTS:
                raise StepFailure("KubeletNotHealthy", f"it was started {len(starts)} times, and ended each time")
            return well and time.monotonic() - since >= QUIET_SECONDS and self.is_ready(was_ready)

        wait(is_well, self.params["timeout_seconds"], "KubeletNotHealthy", lambda: f"it is not well: {said}", 0.5)

    def is_ready(self, matters: bool) -> bool:
        """Whether its Node is Ready. An API that does not answer says nothing against the kubelet."""
        node = self.client.ask(self.node) if matters else None
        return node is None or api.is_ready(node)

    def put_files(self, former: dict) -> None:
        put(kubelet.CONFIG, former["config"])
        for path, content in former["patches"].items():
            put(path, content)

    def put_back(self, former: dict, why: str, was_ready: bool) -> StepFailure:
        """Makes the kubelet as it was; the failure that says so. What it is not well with either is no reason to refuse the new one."""
        now, words = files.text(kubelet.CONFIG) or "", last_words()
        self.put_files(former)
        settings = json.dumps(self.params["settings"], sort_keys=True)
        try:
            self.restart(now)
            self.prove(was_ready)
        except StepFailure as failure:
            said = f"the kubelet is well neither with {settings}: {why}\n{words}\nnor with what it had before"
            return StepFailure("KubeletNotHealthy", f"{said}, which is back: {failure.message}")
        files.remove(kubelet.FORMER)
        back = "its former configuration is back, and it works: correct the field it names"
        return StepFailure("ConfigurationRefused", f"the kubelet does not work with {settings}: {why}\n{words}\n{back}")

    def play(self) -> None:
        former = self.keep_former()
        was_ready = api.is_ready(self.client.ask(self.node))
        try:
            self.render()
        except StepFailure:
            # The kubelet has not read what may be there by now.
            self.put_files(former)
            raise
        try:
            self.restart(former["config"] or "")
            self.prove(was_ready)
        except StepFailure as failure:
            if files.text(kubelet.CONFIG) != former["config"]:
                raise self.put_back(former, failure.message, was_ready) from failure
            # It is not what is new that it fails by.
            self.put_files(former)
            raise
        kubelet.record(self.params["settings"])


def work(call) -> dict:
    params = call.params
    if membership.read(membership.KUBEADM).get("identity") != params["identity"]:
        return {"changed": False, "msg": "kubeadm has not made this machine a node yet"}
    lacks = kubelet.lacks(params["settings"])
    if lacks and not call.check_mode:
        Attempt(params).play()
    return {"changed": bool(lacks), "msg": lacks or "the kubelet has the settings"}
