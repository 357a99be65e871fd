#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Proves that Pods run, that a name resolves and that a Service leads to a Pod."""

from __future__ import annotations

DOCUMENTATION = r"""
module: smoke_test
short_description: A Pod asks another one through a Service's DNS name, in a namespace that is removed afterwards
options:
  url:
    description: Address of the bundle, whose index tells the image's newest tag.
    type: str
    required: true
  source:
    description: >-
      Whom to trust there and who we are: C(index_sha256), C(ca), C(username) and C(password), or C(token). Kept out of arguments,
      files and messages.
    type: dict
    default: {}
  image:
    description: Name of an image with busybox, without tag.
    type: str
    required: true
  version:
    description: Its tag; the newest in the bundle when empty.
    type: str
    default: ""
  dns_domain:
    description: Domain of the cluster.
    type: str
    default: cluster.local
  timeout_seconds:
    description: How long the answer may take.
    type: int
    default: 120
author:
  - Clusterwright developers
"""

import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import api
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, Refused, wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle import Bundle
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle_source import Source
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

LABEL = "clusterwright.dev/smoke-test"
NAME = "smoke-test"
ANSWER = "clusterwright-answers"
SERVER = f"echo {ANSWER} > /www/index.html && exec /bin/busybox httpd -f -p 8080 -h /www"
# Debian's static busybox crashes in wget; nslookup and nc do not.
CLIENT = """\
say() { echo "$1" > /dev/termination-log; }
while true; do
  address=$(/bin/busybox nslookup NAME 2>/dev/null | /bin/busybox awk '/^Name:/ {n = 1} n && /^Address/ {print $NF; exit}')
  if [ -z "$address" ]; then
    say "the name NAME does not resolve"
  elif printf 'GET / HTTP/1.0\\r\\n\\r\\n' | /bin/busybox nc -w 2 "$address" 80 2>/dev/null | /bin/busybox grep -q ANSWER; then
    say "answered"
    exit 0
  else
    say "the Service's address $address does not answer"
  fi
  /bin/busybox sleep 0.3
done
"""


def pod(name: str, role: str, image: str, script: str) -> dict:
    """A Pod that meets Pod Security's restricted level, and that may run on a tainted control plane."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {LABEL: role}},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists"}],
            "affinity": {
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 100,
                            "podAffinityTerm": {
                                "topologyKey": "kubernetes.io/hostname",
                                "labelSelector": {"matchExpressions": [{"key": LABEL, "operator": "Exists"}]},
                            },
                        }
                    ]
                }
            },
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "runAsGroup": 65532,
                "fsGroup": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": role,
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["/bin/busybox", "sh", "-c", script],
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                    "volumeMounts": [{"name": "www", "mountPath": "/www"}],
                }
            ],
            "volumes": [{"name": "www", "emptyDir": {}}],
        },
    }


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


def state_of(thing: dict | None) -> str:
    """Why a Pod is not further, in a few words."""
    status = (thing or {}).get("status") or {}
    for container in status.get("containerStatuses") or []:
        state = container.get("state") or {}
        waiting = state.get("waiting") or {}
        if waiting.get("reason"):
            return f"{waiting['reason']} {waiting.get('message', '')}".strip()
        ended = state.get("terminated") or {}
        if ended:
            return f"ended with {ended.get('exitCode')}: {ended.get('message', '')}"
        if state.get("running"):
            return "runs without an answer so far"
    scheduled = api.condition(thing, "PodScheduled")
    return scheduled.get("message") or status.get("phase", "not created")


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


def work(call) -> dict:
    params = call.params
    client = Api(api.ADMIN)
    tag = params["version"] or Bundle(Source(params["url"], params["source"])).resolve([{"name": params["image"]}])[0]["version"]
    image = f"{params['image']}:{tag}"
    remove_namespaces(client)
    metadata = {"generateName": f"clusterwright-{NAME}-", "labels": {LABEL: "true", "pod-security.kubernetes.io/enforce": "restricted"}}
    try:
        space = create(client, "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        namespace = space["metadata"]["name"]
        base = f"/api/v1/namespaces/{namespace}"
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": NAME},
            "spec": {"selector": {LABEL: "server"}, "ports": [{"port": 80, "targetPort": 8080}]},
        }
        create(client, f"{base}/services", service)
        create(client, f"{base}/pods", pod("server", "server", image, SERVER))
        name = f"{NAME}.{namespace}.svc.{params['dns_domain']}"
        script = CLIENT.replace("NAME", name).replace("ANSWER", ANSWER)
        create(client, f"{base}/pods", pod("client", "client", image, script))
        started = time.monotonic()
        seen: dict = {}

        def answered() -> bool:
            seen["client"] = client.ask(f"{base}/pods/client")
            phase = ((seen["client"] or {}).get("status") or {}).get("phase")
            if phase == "Failed":
                raise StepFailure("SmokeTestFailed", f"the asking Pod failed: {state_of(seen['client'])}")
            return phase == "Succeeded"

        def missing() -> str:
            server = client.ask(f"{base}/pods/server")
            return f"no answer through Service {name}: asking Pod: {state_of(seen.get('client'))}; answering Pod: {state_of(server)}"

        wait(answered, params["timeout_seconds"], "SmokeTestFailed", missing)
        elapsed = time.monotonic() - started
        asked = asking_time(seen["client"])
    finally:
        remove_namespaces(client)
    return {"changed": False, "msg": f"a Pod answered through the name {name} after {elapsed:.1f} s, {asked}"}
