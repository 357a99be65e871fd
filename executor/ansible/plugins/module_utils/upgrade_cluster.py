# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What stands against another version of Kubernetes in the cluster as a whole, as its API tells it. One machine asks for all."""

from __future__ import annotations

import copy

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, feature_gates, kubeadm_config
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, Refused
from ansible_collections.clusterwright.cluster.plugins.module_utils.finding import error, warning
from ansible_collections.clusterwright.cluster.plugins.module_utils.versions import minor, rank

APISERVERS = "/api/v1/namespaces/kube-system/pods?labelSelector=component%3Dkube-apiserver"
NODES = "/api/v1/nodes?resourceVersion=0"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets?resourceVersion=0"
CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/{}"
CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"
# How much older than its API server a kubelet may be, in minors.
KUBELET_SKEW = 3
# Names that a message has, the rest as a number.
NAMED = 10


def number(version: str) -> int:
    """35 of v1.35.4."""
    return int(minor(version).partition(".")[2])


def listed(names: list) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


class Cluster:
    """The cluster through the API server of this machine, and the version that it is to get."""

    def __init__(self, params: dict) -> None:
        self.target = params["version"]
        self.port = params["port"]
        self.client = Api(api.ADMIN)
        self.client.server = f"https://{params['address']}:{params['port']}"
        self.served = self.client.get("/version")["gitVersion"]

    def at(self, address: str) -> Api:
        """The same cluster through another API server."""
        client = copy.copy(self.client)
        client.server = f"https://{address}:{self.port}"
        return client

    def apiservers(self) -> dict:
        """Addresses of the API servers by the names of their Nodes."""
        pods = self.client.get(APISERVERS).get("items") or []
        return {pod["spec"]["nodeName"]: pod["status"]["podIP"] for pod in pods if pod.get("status", {}).get("podIP")}

    def changes_minor(self) -> bool:
        return number(self.served) != number(self.target)


def versions(params: dict) -> list:
    cluster = Cluster(params)
    found = []
    if number(cluster.target) - number(cluster.served) not in (0, 1) or rank(cluster.target) < rank(cluster.served):
        found.append(
            error(
                "version-skew",
                f"the API server serves {cluster.served}, and {cluster.target} is wanted: only a later patch of the same minor and the next"
                " minor can follow",
            )
        )
    if cluster.changes_minor() and cluster.target.rpartition(".")[2] == "0":
        found.append(warning("first-patch", f"{cluster.target} is the first of its minor: a later patch has had its first mistakes corrected"))
    return found


def nodes(params: dict) -> list:
    """Nodes that are not well, and kubelets that the new API server does not work with."""
    cluster = Cluster(params)
    sick: dict = {True: [], False: []}
    old = []
    for node in cluster.client.get(NODES).get("items") or []:
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        if not api.is_ready(node):
            sick[CONTROL_PLANE_LABEL in labels].append(name)
        kubelet = node["status"]["nodeInfo"]["kubeletVersion"]
        if number(cluster.target) - number(kubelet) > KUBELET_SKEW:
            old.append(f"{name} ({kubelet})")
    found = []
    if sick[True]:
        found.append(error("node-not-ready", f"control planes are not Ready: {listed(sick[True])}: repair or replace them first"))
    if sick[False]:
        found.append(
            warning("node-not-ready", f"workers are not Ready: {listed(sick[False])}: their upgrade waits until they are, or are replaced")
        )
    if old:
        found.append(
            error("kubelet-skew", f"kubelets are too old for an API server of {cluster.target}: {listed(old)}: replace these machines first")
        )
    return found


def apiservers(params: dict) -> list:
    cluster = Cluster(params)
    sick = []
    for node, address in cluster.apiservers().items():
        try:
            cluster.at(address).request("GET", "/readyz")
        except (OSError, Refused) as problem:
            sick.append(f"{node} ({problem})")
    return [error("apiserver-unready", f"API servers are not ready: {listed(sick)}")] if sick else []


def disruption_budgets(params: dict) -> list:
    """Budgets by which a drain would wait."""
    cluster = Cluster(params)
    if not cluster.changes_minor():
        return []
    stuck = [
        f"{budget['metadata']['namespace']}/{budget['metadata']['name']}"
        for budget in cluster.client.get(BUDGETS).get("items") or []
        if (status := budget.get("status") or {}).get("expectedPods", 0) > 0 and status.get("disruptionsAllowed", 0) == 0
    ]
    if not stuck:
        return []
    return [
        warning(
            "disruption-budgets",
            f"PodDisruptionBudgets allow no eviction now: {listed(stuck)}: a drain waits for as long as they do; have more Pods, or let the"
            " budget allow one to be away",
        )
    ]


def gates(params: dict) -> list:
    """Feature gates of the cluster's configuration that programs of the version refuse."""
    cluster = Cluster(params)
    before, target = minor(cluster.served), minor(cluster.target)

    def data(name: str, key: str) -> str:
        return ((cluster.client.get(CONFIG_MAP.format(name)) or {}).get("data") or {}).get(key, "")

    configuration = kubeadm_config.read(cluster.client)[1]
    places = (
        ("ConfigMap kubelet-config", feature_gates.mapping(data("kubelet-config", "kubelet")), feature_gates.COMPONENTS),
        ("ConfigMap kube-proxy", feature_gates.mapping(data("kube-proxy", "config.conf")), feature_gates.COMPONENTS),
        ("extraArgs in ConfigMap kubeadm-config", feature_gates.arguments(configuration), feature_gates.COMPONENTS),
        ("ConfigMap kubeadm-config", feature_gates.mapping(configuration), feature_gates.KUBEADM),
    )
    return [
        error("feature-gate", f"feature gate {said}, and {place} (kube-system) sets it: remove it there")
        for place, given, table in places
        for said in feature_gates.refused(given, before, target, table)
    ]
