# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The smoke tests' Pods: how they are made, and what their status tells."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils import api

LABEL = "clusterwright.dev/smoke-test"


def pod(role: str, image: str, script: str, node: str = "") -> dict:
    """A Pod that meets Pod Security's restricted level, and that may run on a tainted control plane; on a certain node, no scheduler
    has a part in it."""
    wanted = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": role, "labels": {LABEL: role}},
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
    if node:
        wanted["spec"]["nodeName"] = node
    return wanted


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


def exit_code(thing: dict | None) -> int | None:
    """How the container ended; None: it did not."""
    for container in ((thing or {}).get("status") or {}).get("containerStatuses") or []:
        ended = (container.get("state") or {}).get("terminated") or {}
        return ended.get("exitCode")
    return None


def phase(thing: dict | None) -> str:
    return ((thing or {}).get("status") or {}).get("phase", "")
