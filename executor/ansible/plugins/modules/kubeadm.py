#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Makes this machine a node by kubeadm, once."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubeadm
short_description: kubeadm init or join, with the files that they need, until the machine's components are healthy
description:
  - Writes the files, enables the kubelet, and runs kubeadm init or join unless that has been done (remembered in /etc/clusterwright/kubeadm.json).
  - What an interrupted attempt left is undone first.
  - A control plane that may run init joins instead when the cluster's endpoint already answers.
options:
  role:
    description: What the machine becomes.
    type: str
    choices: [control-plane, worker]
    required: true
  identity:
    description: What tells this cluster apart.
    type: str
    required: true
  endpoint:
    description: Host and port that clients use.
    type: dict
    required: true
  init_config:
    description: kubeadm's configuration for init; absent where only join is allowed.
    type: str
  join_config:
    description: kubeadm's configuration for join.
    type: str
    required: true
  initialized:
    description: The cluster is known to exist, so that init would be wrong.
    type: bool
    default: false
  initial_files:
    description: Files that kubeadm's components read, to be written before kubeadm runs and not on a machine where it has succeeded.
    type: list
    elements: dict
    default: []
  kubelet:
    description: The kubelet's program.
    type: path
    default: /usr/local/bin/kubelet
  kubelet_settings:
    description: What the cluster's configuration says of the kubelet; the patches among the files have it.
    type: dict
    default: {}
  timeout_seconds:
    description: For kubeadm, and again for the components to become healthy.
    type: int
    default: 300
extends_documentation_fragment:
  - clusterwright.cluster.arguments.apiserver
  - clusterwright.cluster.arguments.files
  - clusterwright.cluster.arguments.node
author:
  - Clusterwright developers
"""

import os
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    certificate_places,
    control_plane,
    files,
    healthz,
    kubeadm_program,
    kubelet,
    membership,
    static_pod,
    succession,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.trust import believing

CA = "/etc/kubernetes/pki/ca.crt"
COMPONENTS = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"]
QUIET_SECONDS = 10
STILL_READY = 'and status "Ready" already exists in the cluster'
# What tells that an earlier attempt got far enough to be in the way.
TRACES = (
    "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/bootstrap-kubelet.conf",
    "/etc/kubernetes/manifests/kube-apiserver.yaml",
    "/var/lib/kubelet/config.yaml",
)


def write_files(params: dict, check: bool) -> list:
    return files.write_all(params["files"], check) + files.write_all(params["secrets"], check, files.SECRET)


def endpoint_answers(params: dict) -> bool:
    """Whether a control plane of this very cluster answers at the endpoint."""
    if not os.path.exists(CA):
        return False
    target = healthz.apiserver(params["endpoint"]["host"], int(params["endpoint"]["port"]))
    return healthz.answer(target, believing(cafile=CA), timeout=3)[0]


def undo_attempt() -> None:
    """Removes what an interrupted kubeadm left; the machine is in no working cluster then."""
    output = attempt("kubeadm", "reset", "--force", "--skip-phases=remove-etcd-member", timeout=300)
    if not output.ok:
        raise StepFailure("KubeadmFailed", f"failed to undo an interrupted attempt: {output.said}")


def run_kubeadm(verb: str, config: str, params: dict) -> None:
    """Runs init or join."""
    arguments = [verb, "--skip-token-print"] if verb == "init" else [verb]
    # The Node of an attempt that was cut short counts as Ready until its kubelet has been silent for a while.
    still_ready = lambda output: STILL_READY in output.err  # noqa: E731
    kubeadm_program.run(arguments, config, params["node_name"], params["timeout_seconds"], still_ready)


def components(params: dict) -> list:
    found = [("kubelet", healthz.KUBELET)]
    if params["role"] == "control-plane":
        found += [
            ("kube-apiserver", healthz.apiserver(params["address"], params["port"])),
            ("kube-controller-manager", healthz.CONTROLLER_MANAGER),
            ("kube-scheduler", healthz.SCHEDULER),
        ]
    return found


def wait_until_healthy(params: dict) -> None:
    said: dict = {}

    def all_well() -> bool:
        for name, endpoint in components(params):
            well, said[name] = healthz.answer(endpoint)
            if not well:
                return False
            said.pop(name)
        return True

    def missing() -> str:
        return "; ".join(f"{name} is not healthy: {text}" for name, text in said.items()) + units.journal(kubelet.UNIT)

    reason = "ApiserverNotReady" if params["role"] == "control-plane" else "KubeletNotHealthy"
    wait(all_well, params["timeout_seconds"], reason, missing)


def wait_until_quiet(params: dict) -> None:
    """A kubelet of another version starts its containers anew, a moment after it has begun itself: until they are healthy, and the same for
    a while."""
    seen, since = None, time.monotonic()

    def is_quiet() -> bool:
        nonlocal seen, since
        well = all(healthz.answer(endpoint)[0] for _name, endpoint in components(params))
        now = control_plane.own_processes(COMPONENTS)
        if not well or now != seen:
            seen, since = now, time.monotonic()
        return well and time.monotonic() - since >= QUIET_SECONDS

    wait(is_quiet, params["timeout_seconds"], "ApiserverNotReady", lambda: f"the control plane does not come to rest: {seen}")


def become_node(params: dict) -> str:
    """Runs init or join, whichever is right, and remembers it."""
    if any(os.path.exists(path) for path in TRACES):
        undo_attempt()
    write_files(params, False)
    files.write_all(params["initial_files"], mode=files.SECRET)
    if params["role"] == "worker":
        # Before the kubelet starts, so that it learns of a static Pod at once.
        static_pod.make_folder()
    units.ensure(kubelet.UNIT, start=False)
    verb = "init"
    if not params["init_config"] or params["initialized"] or endpoint_answers(params):
        verb = "join"
    run_kubeadm(verb, params["init_config"] if verb == "init" else params["join_config"], params)
    kubelet.record(params["kubelet_settings"])
    membership.save(
        membership.KUBEADM, {"identity": params["identity"], "node": params["node_name"], "role": params["role"], "by": verb}
    )
    return verb


def work(call) -> dict:
    params = call.params
    done = membership.read(membership.KUBEADM).get("identity") == params["identity"]
    verb, restarted = None, False
    if not done:
        if not call.check_mode:
            verb = become_node(params)
        changed = True
    else:
        if not call.check_mode:
            succession.check(params["files"] + params["secrets"], certificate_places.AUTHORITIES)
        written = write_files(params, call.check_mode)
        # Certificates and kubeadm's own configuration are read when they are used.
        restarted = units.ensure(kubelet.UNIT, check=call.check_mode, reads=(params["kubelet"], *kubelet.READS))
        changed = bool(written) or restarted
    if not call.check_mode:
        wait_until_healthy(params)
        if restarted and params["role"] == "control-plane":
            wait_until_quiet(params)
    return {"changed": changed, "ran": verb, "msg": f"kubeadm {verb}" if verb else "already a node"}
