# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What clients and extensions of a cluster make of its API, as far as another version of Kubernetes would break it."""

from __future__ import annotations

import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import api
from ansible_collections.clusterwright.cluster.plugins.module_utils.finding import error, warning
from ansible_collections.clusterwright.cluster.plugins.module_utils.upgrade_cluster import Cluster, listed, number

DEPRECATED = re.compile(r"^apiserver_requested_deprecated_apis\{(.*)\} 1$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
METRICS_SECONDS = 60
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{}"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
# Without these no Node comes back, by API group.
VITAL = {"": {"pods", "nodes", "*", "*/*"}, "coordination.k8s.io": {"leases", "*", "*/*"}}


def deprecated(text: str) -> dict:
    """The deprecated APIs that were asked for, each with the release that does not have it any more."""
    found = {}
    for labels in map(dict, map(LABEL.findall, DEPRECATED.findall(text))):
        if labels.get("removed_release"):
            group = f"{labels['group']}/" if labels.get("group") else ""
            found[f"{labels.get('resource')}.{group}{labels.get('version')}"] = labels["removed_release"]
    return found


def deprecated_apis(params: dict) -> list:
    """Each API server counts what it was asked itself, since it began."""
    cluster = Cluster(params)
    asked: dict = {}
    for address in cluster.apiservers().values():
        asked.update(deprecated(cluster.at(address).request("GET", "/metrics", timeout=METRICS_SECONDS)))
    gone = sorted(name for name, release in asked.items() if number(release) <= number(cluster.target))
    later = sorted(f"{name} (until {release})" for name, release in asked.items() if number(release) > number(cluster.target))
    found = []
    if gone:
        found.append(
            error(
                "removed-apis",
                f"APIs are in use that {cluster.target} does not have any more: {listed(gone)}: have their clients use the version that"
                " followed; the audit log (annotation k8s.io/deprecated) says who asks. An API server counts since its start",
            )
        )
    if later:
        found.append(warning("deprecated-apis", f"APIs are in use that a later version does not have: {listed(later)}"))
    return found


def is_vital(webhook: dict) -> bool:
    """Whether nothing can be done to Pods, Nodes or their Leases without it."""
    if webhook.get("namespaceSelector") or webhook.get("objectSelector"):
        return False
    for rule in webhook.get("rules") or []:
        for group, resources in VITAL.items():
            if {group, "*"}.intersection(rule.get("apiGroups") or []) and resources.intersection(rule.get("resources") or []):
                return True
    return False


def webhooks(params: dict) -> list:
    """Webhooks that must answer, and whose Service has nobody who could."""
    cluster = Cluster(params)
    ready: dict = {}
    found = []
    for kind in ("validating", "mutating"):
        for configuration in cluster.client.get(WEBHOOKS.format(kind)).get("items") or []:
            for webhook in configuration.get("webhooks") or []:
                service = (webhook.get("clientConfig") or {}).get("service")
                if not service or webhook.get("failurePolicy") != "Fail":
                    continue
                key = (service["namespace"], service["name"])
                if key not in ready:
                    ready[key] = has_endpoint(cluster, *key)
                if ready[key]:
                    continue
                found.append(
                    (error if is_vital(webhook) else warning)(
                        "webhook-unavailable",
                        f"webhook {webhook['name']} of {configuration['metadata']['name']} ({kind}) has failurePolicy Fail, and Service"
                        f" {'/'.join(key)} has no ready endpoint: what it is for is refused; bring it up, or delete its configuration",
                    )
                )
    return found


def has_endpoint(cluster: Cluster, namespace: str, name: str) -> bool:
    slices = (cluster.client.get(SLICES.format(namespace, name)) or {}).get("items") or []
    endpoints = [endpoint for one in slices for endpoint in one.get("endpoints") or []]
    # As the API says: unknown counts as ready.
    return any((endpoint.get("conditions") or {}).get("ready") is not False for endpoint in endpoints)


def api_services(params: dict) -> list:
    services = Cluster(params).client.get(API_SERVICES).get("items") or []
    sick = [service["metadata"]["name"] for service in services if api.condition(service, "Available").get("status") == "False"]
    if not sick:
        return []
    return [warning("apiservice-unavailable", f"APIServices are not available: {listed(sick)}: Namespaces cannot be deleted meanwhile")]
