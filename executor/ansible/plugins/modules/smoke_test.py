#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Proves that Pods run, that a name resolves and that a Service leads to a Pod."""

from __future__ import annotations

DOCUMENTATION = r"""
module: smoke_test
short_description: A Pod asks another one through a Service's DNS name, in a namespace that is removed afterwards
description:
  - With O(node), both Pods run on that Node and the API is asked through this machine's own server, so that the test proves this
    machine. A fault elsewhere (the cluster's DNS, its controllers) is reported as a warning in C(clusterwright.findings).
options:
  node:
    description: This machine's Node, where the machine joins a cluster that runs. Empty - the scheduler decides, and every fault fails.
    type: str
    default: ""
  address:
    description: Address of this machine's API server, with O(node).
    type: str
    default: ""
  port:
    description: Port of this machine's API server.
    type: int
    default: 6443
  timeout_seconds:
    description: How long the Pods may take to start; the asking one has half of that for its answer.
    type: int
    default: 120
extends_documentation_fragment:
  - clusterwright.cluster.arguments.bundle
  - clusterwright.cluster.arguments.smoke_test
author:
  - Clusterwright developers
"""

import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import api
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, Refused, wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.smoke_pod import LABEL, exit_code, phase, pod, state_of
from ansible_collections.clusterwright.cluster.plugins.module_utils.smoke_report import Elsewhere, elsewhere, image_of
from ansible_collections.clusterwright.cluster.plugins.module_utils.smoke_scripts import CLIENT, NO_NAME, NO_SERVICE, SERVER, WITNESS, filled

NAME = "smoke-test"
WITNESS_SECONDS = 20


def create(client: Api, path: str, body: dict, timeout: float = 20) -> dict:
    """Creates the object; retried while the namespace has no service account yet, a second after its creation."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return client.request("POST", path, body)
        except (Refused, OSError) as error:
            if time.monotonic() > deadline or (isinstance(error, Refused) and error.status not in (403, 404, 429, 500, 503)):
                raise StepFailure("SmokeTestFailed", f"failed to create {body['kind']} of the smoke test: {error}") from error
        time.sleep(0.1)


def asking_time(thing: dict) -> str:
    """From when to when the asking container ran: apart, slow starts of Pods and a slow network look the same."""
    for container in thing["status"].get("containerStatuses") or []:
        ended = (container.get("state") or {}).get("terminated") or {}
        return f"asked from {ended.get('startedAt')} to {ended.get('finishedAt')}"
    return "asked at an unknown time"


def remove_namespaces(client: Api) -> None:
    """Removes the smoke test's namespaces, also what a broken-off run left. Kubernetes finishes by itself."""
    listed = client.ask(f"/api/v1/namespaces?labelSelector={LABEL}") or {}
    for namespace in listed.get("items", []):
        name = namespace["metadata"]["name"]
        try:
            if namespace["metadata"].get("deletionTimestamp") is None:
                client.request("DELETE", f"/api/v1/namespaces/{name}/pods?gracePeriodSeconds=0")
                client.request("DELETE", f"/api/v1/namespaces/{name}")
        except (Refused, OSError):
            # It carries our label: the next run removes it.
            pass


def endpoints(client: Api, namespace: str, service: str) -> list:
    """(address, node) of the Service's endpoints that are ready."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io/service-name={service}"
    found = []
    for piece in (client.ask(path) or {}).get("items", []):
        for endpoint in piece.get("endpoints") or []:
            if (endpoint.get("conditions") or {}).get("ready", True):
                found += [(address, endpoint.get("nodeName", "")) for address in endpoint.get("addresses") or []]
    return found


def witness_of(client: Api, node: str, servers: list) -> tuple:
    """A Ready node, and the DNS's Pods on others that it can be asked about; one without a Pod of the DNS first."""
    nodes = (client.ask("/api/v1/nodes") or {}).get("items", [])
    others = [other["metadata"]["name"] for other in nodes if api.is_ready(other) and other["metadata"]["name"] != node]
    holders = {where for _address, where in servers}
    for other in sorted(others, key=lambda name: (name in holders, name)):
        remote = [address for address, where in servers if where != other]
        if remote:
            return other, remote
    return "", []


def judge_dns(client: Api, base: str, node: str, image: str, asked: dict) -> str:
    """What shows that this machine does not reach the cluster's DNS, while another one does. Raises Elsewhere when nothing does."""
    servers = endpoints(client, "kube-system", "kube-dns")
    if not servers:
        raise Elsewhere("no Pod of the cluster's DNS is ready")
    here = [address for address, where in servers if where == node]
    if here:
        return f"a Pod of the cluster's DNS runs on this very node ({here[0]})"
    other, remote = witness_of(client, node, servers)
    if not other:
        holders = ", ".join(sorted({where for _address, where in servers}))
        raise Elsewhere(f"the cluster's DNS runs on {holders} alone, and there is no further Ready node to ask it from")
    script = filled(WITNESS, SERVERS=" ".join(remote), SECONDS=WITNESS_SECONDS, **asked)
    try:
        create(client, f"{base}/pods", pod("witness", image, script, other))
        ended = lambda: phase(client.ask(f"{base}/pods/witness")) in ("Succeeded", "Failed")  # noqa: E731
        wait(ended, 3 * WITNESS_SECONDS, "SmokeTestFailed", lambda: "no end")
    except StepFailure as failure:
        raise Elsewhere(f"a Pod on node {other}, which should ask as well, does not start") from failure
    if phase(client.ask(f"{base}/pods/witness")) == "Failed":
        raise Elsewhere(f"a Pod on node {other} gets no answer from the cluster's DNS ({', '.join(remote)}) either")
    return f"a Pod on node {other} gets an answer from the cluster's DNS ({', '.join(remote)})"


def judge(client: Api, base: str, node: str, image: str, asked: dict) -> None:
    """Raises Elsewhere when what failed is not this machine's fault, or not known to be."""
    asking, answering = (client.ask(f"{base}/pods/{name}") for name in ("client", "server"))
    told = f"asking Pod: {state_of(asking)}; answering Pod: {state_of(answering)}"
    failed = exit_code(asking)
    if failed == NO_SERVICE and api.is_ready(answering) and not endpoints(client, base.rpartition("/")[2], NAME):
        raise Elsewhere("kube-controller-manager gave the Service of the smoke test no endpoint")
    if failed == NO_NAME:
        told = f"{told}; {judge_dns(client, base, node, image, asked)}"
    raise StepFailure("SmokeTestFailed", f"no answer through a Service to a Pod on node {node}: {told}")


def make_namespace(client: Api, joins: bool) -> str:
    labels = {LABEL: "true", "pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"generateName": f"clusterwright-{NAME}-", "labels": labels}
    space = create(client, "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    base = f"/api/v1/namespaces/{space['metadata']['name']}"
    if joins:
        try:
            wait(lambda: client.ask(f"{base}/serviceaccounts/default"), 20, "SmokeTestFailed", lambda: "none")
        except StepFailure as failure:
            raise Elsewhere("kube-controller-manager gave the namespace of the smoke test no service account") from failure
    return base


def prove(client: Api, params: dict, image: str) -> str:
    """How long the answer took. Raises Elsewhere, where the machine joins, or StepFailure."""
    node, timeout = params["node"], params["timeout_seconds"]
    base = make_namespace(client, bool(node))
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME},
        "spec": {"selector": {LABEL: "server"}, "ports": [{"port": 80, "targetPort": 8080}]},
    }
    made = create(client, f"{base}/services", service)
    name = f"{NAME}.{base.rpartition('/')[2]}.svc.{params['dns_domain']}"
    asked = {"NAME": name, "ADDRESS": made["spec"]["clusterIP"]}
    create(client, f"{base}/pods", pod("server", image, SERVER, node))
    create(client, f"{base}/pods", pod("client", image, filled(CLIENT, SECONDS=max(timeout // 2, 1), **asked), node))
    started = time.monotonic()
    seen: dict = {}

    def ended() -> bool:
        seen["client"] = client.ask(f"{base}/pods/client") or seen.get("client")
        return phase(seen["client"]) in ("Succeeded", "Failed")

    def missing() -> str:
        server = client.ask(f"{base}/pods/server")
        return f"no answer through Service {name}: asking Pod: {state_of(seen.get('client'))}; answering Pod: {state_of(server)}"

    wait(ended, timeout + timeout // 2, "SmokeTestFailed", missing)
    if phase(seen["client"]) == "Failed":
        if node:
            judge(client, base, node, image, asked)
        raise StepFailure("SmokeTestFailed", missing())
    elapsed = time.monotonic() - started
    return f"a Pod answered through the name {name} after {elapsed:.1f} s, {asking_time(seen['client'])}"


def work(call) -> dict:
    params = call.params
    client = Api(api.ADMIN)
    if params["node"]:
        # Behind the endpoint may be the API server of a machine that is sick.
        host = f"[{params['address']}]" if ":" in params["address"] else params["address"]
        client.server = f"https://{host}:{params['port']}"
    image = image_of(params)
    remove_namespaces(client)
    try:
        said = prove(client, params, image)
    except Elsewhere as fault:
        return elsewhere(params["node"], fault)
    finally:
        remove_namespaces(client)
    return {"changed": False, "msg": said}
