#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Tells this machine's API server where etcd is."""

from __future__ import annotations

DOCUMENTATION = r"""
module: apiserver_etcd
short_description: Sets the etcd endpoints of this machine's API server and of the cluster's configuration, and waits until they are in use
options:
  endpoints:
    description: Client URLs of all members.
    type: list
    elements: str
    required: true
  authority:
    description: A file with the authorities of etcd, which an API server reads when it starts. Empty - not looked at.
    type: path
    default: ""
  timeout_seconds:
    description: Until the components are healthy with them.
    type: int
    default: 300
extends_documentation_fragment:
  - clusterwright.cluster.arguments.apiserver
  - clusterwright.cluster.arguments.files
author:
  - Clusterwright developers
"""

import re
import signal

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    api,
    apiserver_process,
    files,
    healthz,
    kubeadm_config,
    processes,
    prompt_start,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

MANIFEST = "/etc/kubernetes/manifests/kube-apiserver.yaml"
FLAG = re.compile(r"--etcd-servers=(\S+)")


def set_manifest(endpoints: list, check: bool) -> tuple:
    """Writes the flag into the manifest. (The flag's value, whether it was another one); an order alone is no reason to restart."""
    try:
        with open(MANIFEST, encoding="utf-8") as source:
            text = source.read()
    except OSError as error:
        raise StepFailure("ApiserverNotReady", f"failed to read {MANIFEST}: {error}: was the control-plane step run?") from error
    now = FLAG.search(text)
    if not now:
        raise StepFailure("ManifestRefused", f"{MANIFEST} has no --etcd-servers: correct it by hand")
    if set(now.group(1).split(",")) == set(endpoints):
        return now.group(1), False
    flag = ",".join(endpoints)
    # The kubelet takes up the file as a whole: written beside it under a hidden name, then renamed.
    return flag, files.write(MANIFEST, FLAG.sub(f"--etcd-servers={flag}", text), files.SECRET, check)


def with_endpoints(text: str, endpoints: list) -> str:
    """The cluster's configuration with these endpoints of etcd."""
    for path in (kubeadm_config.ENDPOINTS, kubeadm_config.HTTP_ENDPOINTS):
        now = kubeadm_config.items(text, path)
        if (now or path == kubeadm_config.ENDPOINTS) and set(now) != set(endpoints):
            text = kubeadm_config.with_items(text, path, endpoints)
    return text


def set_configuration(endpoints: list, check: bool) -> bool:
    client = Api(api.ADMIN)
    _found, text = kubeadm_config.read(client)
    differs = with_endpoints(text, endpoints) != text
    if differs and not check:
        kubeadm_config.edit(client, lambda _found, text: (with_endpoints(text, endpoints), None))
    return differs


def prove(params: dict, flag: str, reads: list) -> None:
    """Waits until the API server runs with what is wanted, and all is healthy."""
    said: dict = {}

    def well() -> bool:
        if not apiserver_process.runs_with(f"--etcd-servers={flag}") or apiserver_process.outdated(reads):
            said["kube-apiserver"] = "the kubelet has not started it anew with what is wanted yet"
            return False
        for name, target in (
            ("kube-apiserver", healthz.apiserver(params["address"], params["port"])),
            ("kube-controller-manager", healthz.CONTROLLER_MANAGER),
            ("kube-scheduler", healthz.SCHEDULER),
        ):
            good, text = healthz.answer(target)
            if not good:
                said.clear()
                said[name] = text
                return False
        return True

    wait(
        well,
        params["timeout_seconds"],
        "ApiserverNotReady",
        lambda: "; ".join(f"{name}: {text}" for name, text in said.items()) + units.journal("kubelet.service"),
    )


def bring(params: dict, reads: list) -> tuple:
    """Has the API server run with what is wanted. (The flag's value, whether anything had to be done)."""
    with prompt_start.watched(["kube-apiserver"]):
        flag, changed = set_manifest(params["endpoints"], False)
        late = apiserver_process.outdated(reads)
        for pid in late:
            # The kubelet starts it again.
            processes.kill(pid, signal.SIGTERM)
        prove(params, flag, reads)
    apiserver_process.remember(reads)
    return flag, changed or bool(late)


def look(params: dict, reads: list) -> tuple:
    """The same, without doing it."""
    flag, changed = set_manifest(params["endpoints"], True)
    return flag, changed or bool(apiserver_process.outdated(reads))


def work(call) -> dict:
    params, check = call.params, call.check_mode
    endpoints = params["endpoints"]
    if not endpoints:
        raise StepFailure("InvalidVariables", "etcd_client_endpoints is empty: an API server needs one at least")
    # An API server whose client certificate has expired does not answer: it takes up the next one with its next connection.
    written = files.write_all(params["files"], check) + files.write_all(params["secrets"], check, files.SECRET)
    reads = [params["authority"]] if params["authority"] else []
    flag, changed = look(params, reads) if check else bring(params, reads)
    changed = changed or bool(written)
    try:
        changed = set_configuration(endpoints, check) or changed
    except OSError as error:
        raise StepFailure("ApiserverNotReady", f"the cluster's endpoint does not answer: {error}") from error
    return {"changed": changed, "msg": f"it does not run with {flag}, or kubeadm's configuration has others" if check and changed else flag}
