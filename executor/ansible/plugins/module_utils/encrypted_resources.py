# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Where in etcd an API server has the objects of a resource that may be encrypted, and where they are in its API."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

# Kubernetes' own: all of them are below their plural, whatever their group.
CORE = ("configmaps", "persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates", "secrets", "serviceaccounts")
GROUPS = {
    "apps": ("controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"),
    "batch": ("cronjobs", "jobs"),
}


def folders(resource: str) -> list:
    """Where they are, behind the API server's prefix: `configmaps/`, `example.com/widgets/`, of a wildcard several."""
    plural, dot, group = resource.partition(".")
    if not dot and resource in CORE:
        return [f"{resource}/"]
    if group in GROUPS and plural in ("*", *GROUPS[group]):
        return [f"{name}/" for name in (GROUPS[group] if plural == "*" else [plural])]
    if "." in group:
        return [f"{group}/" if plural == "*" else f"{group}/{plural}/"]
    raise StepFailure("InvalidVariables", f"where {resource} is in etcd is not known: correct the run's files")


class Place:
    """One object: its resource, e.g. `widgets.example.com`, and its name, with its namespace before it if it has one."""

    def __init__(self, key: str) -> None:
        first, _slash, rest = key.partition("/")
        if "." in first:
            plural, _slash, self.name = rest.partition("/")
            self.group = first
        else:
            plural, self.name = first, rest
            self.group = next((group for group, plurals in GROUPS.items() if plural in plurals), "")
        self.plural = plural
        self.resource = f"{plural}.{self.group}" if self.group else plural

    def __str__(self) -> str:
        return f"{self.resource} {self.name}"


class Paths:
    """Where objects are in the API, whose versions of custom resources are asked for once."""

    def __init__(self, client: Api) -> None:
        self.client, self.known = client, {}

    def below(self, place: Place) -> str:
        """`/apis/apps/v1`."""
        if not place.group:
            return "/api/v1"
        if place.group in GROUPS:
            return f"/apis/{place.group}/v1"
        if place.resource not in self.known:
            self.known[place.resource] = self.served(place)
        return self.known[place.resource]

    def served(self, place: Place) -> str:
        group = self.client.request("GET", f"/apis/{place.group}")
        versions = [group["preferredVersion"]["version"], *(version["version"] for version in group["versions"])]
        for version in versions:
            path = f"/apis/{place.group}/{version}"
            if any(resource["name"] == place.plural for resource in self.client.request("GET", path)["resources"]):
                return path
        raise OSError(f"no version of {place.group} has {place.plural}")

    def path(self, place: Place) -> str:
        namespace, slash, name = place.name.partition("/")
        scope = f"/namespaces/{namespace}/{place.plural}/{name}" if slash else f"/{place.plural}/{namespace}"
        return self.below(place) + scope
