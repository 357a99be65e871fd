#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Removes from a restored cluster what was of the past when it was backed up, before anything acts on it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: restore_cleanup
short_description: Deletes bootstrap tokens, certificate signing requests, and the Nodes of machines that are not the cluster's any more
description:
  - The Pods of these Nodes go with them, as the controller of Pods that have lost their Node would do it a minute later; until then
    Services would lead to them.
  - Through this machine's own API server, with the administrator's kubeconfig.
options:
  nodes:
    description: Names of all Nodes that belong to machines of the cluster; the others are deleted.
    type: list
    elements: str
    required: true
  timeout_seconds:
    description: Until the API server lets the administrator in, and then until what the cluster asks about a deletion answers.
    type: int
    default: 120
extends_documentation_fragment:
  - clusterwright.cluster.arguments.apiserver
author:
  - Clusterwright developers
"""

import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import api
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, Refused, wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
SECRETS = "/api/v1/namespaces/kube-system/secrets"
TOKENS = "fieldSelector=type%3Dbootstrap.kubernetes.io%2Ftoken"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
PAGE = 250
# A webhook that does not answer is waited for by the API server, 30 s at most.
REQUEST_SECONDS = 40
TOKEN = "bootstrap token"
REQUEST = "certificate signing request"
POD = "Pod"
NODE = "Node"


def local(params: dict) -> Api:
    """Behind the endpoint may be another machine's API server."""
    client = Api(api.ADMIN)
    host = f"[{params['address']}]" if ":" in params["address"] else params["address"]
    client.server = f"https://{host}:{params['port']}"
    return client


def wait_until_admitted(client: Api, timeout: float) -> None:
    """An API server that has just started knows nobody's rights for some seconds."""
    said = ""

    def admitted() -> bool:
        nonlocal said
        try:
            for path in (NODES, SECRETS, REQUESTS):
                client.request("GET", f"{path}?limit=1")
        except (OSError, Refused) as problem:
            said = str(problem)
            return False
        return True

    wait(admitted, timeout, "ApiserverNotReady", lambda: f"the API server does not answer the administrator: {said}", pause=1)


def listed(client: Api, path: str, query: str = "") -> list:
    """The metadata of all objects there."""
    found: list = []
    more = ""
    while True:
        answer = client.request("GET", f"{path}?limit={PAGE}&{query}{more}", timeout=60)
        found += [item["metadata"] for item in answer.get("items") or []]
        token = (answer.get("metadata") or {}).get("continue")
        if not token:
            return found
        more = f"&continue={token}"


def delete(client: Api, path: str, uid: str, deadline: float) -> bool:
    """Deletes exactly this object, at once. False when it is gone, or is another one by now. What refuses it may be a webhook of the
    cluster, whose Pods are reached again only after some time."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
    while True:
        try:
            client.request("DELETE", path, body, timeout=REQUEST_SECONDS)
            return True
        except Refused as refused:
            if refused.status in (404, 409):
                return False
            if refused.status < 500 or time.monotonic() > deadline:
                raise StepFailure("RestoreCleanupRefused", f"failed to delete {path}: {refused}") from refused
        time.sleep(1)


def pods_of(client: Api, node: str) -> list:
    """The Pods that are bound to a Node, as due() has them."""
    found = listed(client, PODS, f"fieldSelector=spec.nodeName%3D{node}")
    return [(POD, f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}", pod["uid"]) for pod in found]


def due(client: Api, nodes: list) -> list:
    """What is to be deleted, as (what it is, path, UID): the Pods of a Node before it."""
    kept = {name.lower() for name in nodes}
    found = [(TOKEN, f"{SECRETS}/{secret['name']}", secret["uid"]) for secret in listed(client, SECRETS, TOKENS)]
    found += [(REQUEST, f"{REQUESTS}/{request['name']}", request["uid"]) for request in listed(client, REQUESTS)]
    for node in listed(client, NODES):
        if node["name"].lower() not in kept:
            found += [*pods_of(client, node["name"]), (NODE, f"{NODES}/{node['name']}", node["uid"])]
    return found


def told(entries: list) -> str:
    """Nodes each by name, the rest by its number."""
    parts = []
    for what in (TOKEN, REQUEST, POD):
        count = sum(entry[0] == what for entry in entries)
        parts += [f"{count} {what}{'s' if count > 1 else ''}"] if count else []
    return ", ".join(parts + [f"Node {path.rpartition('/')[2]}" for what, path, _uid in entries if what == NODE])


def work(call) -> dict:
    params = call.params
    if not params["nodes"]:
        raise StepFailure("InvalidVariables", "etcd_restore.nodes is empty: every Node would be deleted")
    client = local(params)
    wait_until_admitted(client, params["timeout_seconds"])
    deadline = time.monotonic() + params["timeout_seconds"]
    try:
        entries = due(client, params["nodes"])
        if not call.check_mode:
            entries = [entry for entry in entries if delete(client, *entry[1:], deadline)]
    except OSError as error:
        raise StepFailure("ApiserverNotReady", f"the API server stopped to answer: {error}") from error
    except Refused as refused:
        raise StepFailure("RestoreCleanupRefused", f"failed to list what is to be deleted: {refused}") from refused
    return {"changed": bool(entries), "msg": f"deleted {told(entries)}" if entries else "nothing to delete"}
