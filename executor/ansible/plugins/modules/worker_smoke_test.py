#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Proves that this worker's kubelet runs Pods which reach a Service and the cluster's DNS."""

from __future__ import annotations

DOCUMENTATION = r"""
module: worker_smoke_test
short_description: A static Pod on this worker connects to the Service kubernetes and resolves its name, and is removed afterwards
description:
  - It uses the kubelet's credentials, which allow to read this Node, its Pods and the Services. The Pod's result is read on the machine.
  - A fault elsewhere (the API, the cluster's DNS, its controllers) is reported as a warning in C(clusterwright.findings).
options:
  node:
    description: This machine's Node.
    type: str
    required: true
  kube_proxy:
    description: Whether kube-proxy serves Services. Else the network plugin does, by Pods of DaemonSets.
    type: bool
    default: true
  timeout_seconds:
    description: How long the Pod may take to start; it has half of that for its answers.
    type: int
    default: 120
extends_documentation_fragment:
  - clusterwright.cluster.arguments.bundle
  - clusterwright.cluster.arguments.smoke_test
author:
  - Clusterwright developers
"""

import re
import time
import uuid

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, network_evidence, static_pod, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, Refused
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.smoke_pod import pod, state_of
from ansible_collections.clusterwright.cluster.plugins.module_utils.smoke_report import Elsewhere, elsewhere, image_of
from ansible_collections.clusterwright.cluster.plugins.module_utils.smoke_scripts import NO_SERVICE, WORKER, filled

RESULT = re.compile(r"ended with ([0-9]+): (.*)\n")
SERVICE = "/api/v1/namespaces/default/services/kubernetes"
DNS = "/api/v1/namespaces/kube-system/services/kube-dns"
# The API's answer may take that long before it counts as none.
API_SECONDS = 20
# Pods that a message names.
NAMED = 5


def failed(message: str) -> StepFailure:
    return StepFailure("SmokeTestFailed", message)


def read(client: Api, path: str) -> dict:
    """The object, empty when there is none. Raises Elsewhere while no API server answers this machine."""
    deadline = time.monotonic() + API_SECONDS
    while True:
        try:
            return client.get(path) or {}
        except Refused as refused:
            if refused.status < 500 and refused.status != 429:
                raise failed(f"the API refuses {path} to this machine's kubelet: {refused}") from refused
            said = refused
        except OSError as error:
            said = error
        if time.monotonic() > deadline:
            raise Elsewhere(f"the API does not answer this machine at {client.server}: {said}") from said
        time.sleep(0.5)


def address_of(service: dict) -> str:
    return (service.get("spec") or {}).get("clusterIP", "")


def result_of(uid: str, timeout: float) -> tuple:
    """(exit code, what the Pod said); no code when it did not end in time."""
    deadline = time.monotonic() + timeout
    while True:
        said = static_pod.termination_message(uid)
        found = RESULT.fullmatch(said)
        if found:
            return int(found[1]), found[2]
        if time.monotonic() > deadline:
            return None, said.strip()
        time.sleep(0.1)


def judge_start(client: Api, node: str, uid: str, said: str) -> StepFailure:
    """Why the Pod did not end, as far as this machine and the API tell."""
    mirror = client.ask(static_pod.mirror_path(node))
    state = state_of(mirror) if static_pod.is_mirror(mirror, uid) else "its kubelet reports no such Pod"
    said = f"; it said last: {said}" if said else ""
    return failed(f"the Pod of the smoke test did not end on node {node}: {state}{said}{units.journal('kubelet.service')}")


def judge_service(client: Api, params: dict, said: str) -> StepFailure:
    """Raises Elsewhere where this machine was given nothing that serves Services."""
    node = params["node"]
    serving = judge_kube_proxy(client, node) if params["kube_proxy"] else judge_plugin(client, node)
    return failed(f"{said} to a Pod on node {node}, while the API answers the machine at {client.server}{serving}")


def judge_kube_proxy(client: Api, node: str) -> str:
    """What there is to say of kube-proxy here. Raises Elsewhere where this machine was given none."""
    proxies = client.ask(f"/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-proxy&fieldSelector=spec.nodeName%3D{node}")
    if proxies is not None and not proxies.get("items"):
        raise Elsewhere(f"kube-controller-manager gave node {node} no Pod of kube-proxy")
    sick = [state_of(proxy) for proxy in (proxies or {}).get("items", []) if not api.is_ready(proxy)]
    return f"; its kube-proxy is not ready: {'; '.join(sick)}" if sick else ""


def judge_plugin(client: Api, node: str) -> str:
    """What there is to say of Pods of DaemonSets here, as those of network plugins are. Raises Elsewhere where this machine was given
    none."""
    pods = client.ask(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}")
    if pods is None:
        return "; the cluster has no kube-proxy: look at the network plugin"
    agents = [pod for pod in pods.get("items", []) if is_of_daemon_set(pod)]
    if not agents:
        raise Elsewhere(f"the cluster has no kube-proxy, and kube-controller-manager gave node {node} no Pod of a DaemonSet")
    sick = [f"{title(pod)} is not ready: {state_of(pod)}" for pod in agents if not api.is_ready(pod)]
    told = sick or [f"look at the network plugin among {', '.join(title(pod) for pod in agents[:NAMED])}"]
    return f"; the cluster has no kube-proxy: {'; '.join(told[:NAMED])}"


def is_of_daemon_set(pod: dict) -> bool:
    return any(owner.get("kind") == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or [])


def title(pod: dict) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def judge_dns(client: Api, node: dict, name: str, said: str) -> StepFailure:
    """What shows that the machine, and not the cluster's DNS, is at fault. Raises Elsewhere when nothing does."""
    address, title = address_of(read(client, DNS)), node["metadata"]["name"]
    if not address:
        raise Elsewhere("the cluster has no Service kube-dns in kube-system")
    peers = network_evidence.ask_peers(node)
    silent = [f"{peer} ({error})" for peer, error in peers.items() if error]
    if 2 * len(silent) > len(peers):
        return failed(f"{said} for a Pod on node {title}, and other nodes do not answer this machine either: {', '.join(silent)}")
    answered, wrong = network_evidence.ask_dns(address, name)
    if answered and not wrong:
        return failed(f"{said} for a Pod on node {title}, while the cluster's DNS ({address}) resolves it for the machine itself")
    if answered:
        raise Elsewhere(f"the cluster's DNS ({address}) does not resolve {name}: {wrong}")
    others = f"{len(peers) - len(silent)} of {len(peers)} other nodes answer it" if peers else "it was given no other node to ask"
    raise Elsewhere(f"the cluster's DNS ({address}) does not answer node {title} ({wrong}), while {others}")


def prove(client: Api, params: dict, image: str) -> str:
    """How long the answers took. Raises Elsewhere or StepFailure."""
    node, timeout = params["node"], params["timeout_seconds"]
    service = read(client, SERVICE)
    if not address_of(service):
        raise Elsewhere("the cluster has no Service kubernetes in default")
    name = f"kubernetes.default.svc.{params['dns_domain']}"
    port = service["spec"]["ports"][0]["port"]
    script = filled(WORKER, NAME=name, ADDRESS=address_of(service), PORT=port, SECONDS=max(timeout // 2, 1))
    uid = str(uuid.uuid4())
    started = time.monotonic()
    with static_pod.running(static_pod.manifest(pod("worker", image, script), uid)):
        code, said = result_of(uid, timeout + timeout // 2)
        if code == 0:
            return f"a Pod on node {node} reached Service kubernetes by its name after {time.monotonic() - started:.1f} s"
        known = read(client, f"/api/v1/nodes/{node}")
        if not known:
            raise failed(f"node {node} does not exist: it was deleted while it joined")
        if code is None:
            raise judge_start(client, node, uid, said)
        raise judge_service(client, params, said) if code == NO_SERVICE else judge_dns(client, known, name, said)


def work(call) -> dict:
    params = call.params
    static_pod.remove()
    image = image_of(params)
    try:
        said = prove(Api(api.KUBELET), params, image)
    except Elsewhere as fault:
        return elsewhere(params["node"], fault)
    return {"changed": False, "msg": said}
