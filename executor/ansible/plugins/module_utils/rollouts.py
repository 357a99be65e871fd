# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Whether Deployments and DaemonSets run what is wanted of them."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, condition, wait


def image(thing: dict | None, name: str) -> str:
    """The image of the container of this name; empty where there is none."""
    containers = thing["spec"]["template"]["spec"]["containers"] if thing else []
    return next((container["image"] for container in containers if container["name"] == name), "")


def rolled_out(kind: str, thing: dict | None) -> str:
    """Nothing when all Pods are of the newest revision and enough are available, else what is missing. How many of a Deployment are
    enough is its own strategy's: the second CoreDNS comes up to 10 s later, at its next readiness probe."""
    if thing is None:
        return "does not exist"
    status, spec = thing.get("status") or {}, thing.get("spec") or {}
    if status.get("observedGeneration", 0) < thing["metadata"].get("generation", 0):
        return "not seen by its controller yet"
    if kind == "deployments":
        wanted = spec.get("replicas", 1)
        updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
        if updated >= wanted and condition(thing, "Available").get("status") == "True":
            return ""
    else:
        wanted = status.get("desiredNumberScheduled", 0)
        updated, available = status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)
        if wanted == 0:
            return "wanted on no node"
    return "" if updated >= wanted and available >= wanted else f"{available} of {wanted} Pods available"


def wait_for(client: Api, rollouts: list, timeout: float) -> None:
    """Waits until each {resource, namespace, name} is rolled out. Fails with RolloutIncomplete."""
    missing: dict = {}

    def all_out() -> bool:
        missing.clear()
        for entry in rollouts:
            path = f"/apis/apps/v1/namespaces/{entry['namespace']}/{entry['resource']}/{entry['name']}"
            lack = rolled_out(entry["resource"], client.ask(path))
            if lack:
                missing[entry["name"]] = lack
        return not missing

    wait(all_out, timeout, "RolloutIncomplete", lambda: "; ".join(f"{name}: {lack}" for name, lack in missing.items()))
