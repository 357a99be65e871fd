# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The mode of kube-proxy in a cluster that runs. kube-proxy does not notice another ConfigMap, so its Pods are made anew; one that starts
takes back the rules of the other mode before it writes its own."""

from __future__ import annotations

import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import kubeadm_config, rollouts
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import MERGE, STRATEGIC, Api
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

DAEMON_SET = {"resource": "daemonsets", "namespace": "kube-system", "name": "kube-proxy"}
SET_PATH = "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy"
MAP_PATH = "/api/v1/namespaces/kube-system/configmaps/kube-proxy"
NODES_PATH = "/api/v1/nodes"
KEY = "config.conf"
DEFAULT = "iptables"
NFTABLES = "nftables"
# Older kernels lack what the rules of nftables mode are made of.
NFTABLES_KERNEL = (5, 13)
# On the ConfigMap: the mode that it had before it was configured, and the one that not all Pods may have yet.
FORMER = "clusterwright.dev/former-mode"
ROLLS_OUT = "clusterwright.dev/rolls-out-mode"
# On the Pods.
MODE = "clusterwright.dev/mode"
# Services are reached through the rules that are there while a Pod is made anew; one Node after the other would take hours.
AT_ONCE = "10%"


def is_too_old(release: str) -> bool:
    """Whether nftables mode does not work with this kernel."""
    return tuple(int(number) for number in re.findall(r"\d+", release)[:2]) < NFTABLES_KERNEL


class KubeProxy:
    """kube-proxy as its ConfigMap has it."""

    def __init__(self, client: Api) -> None:
        self.client = client
        self.found = client.get(MAP_PATH)
        self.notes = ((self.found or {}).get("metadata") or {}).get("annotations") or {}
        self.text = ((self.found or {}).get("data") or {}).get(KEY, "")

    @property
    def mode(self) -> str:
        return kubeadm_config.scalar(self.text, "mode") or DEFAULT

    def wanted(self, configured: str) -> tuple:
        """The mode that is wanted, and the one to note as the former; both empty where nothing is configured, and was."""
        if not configured:
            return self.notes.get(FORMER, ""), ""
        # Of a cluster that began with the mode, the former one is what it would have by itself.
        before = self.mode if self.mode != configured else DEFAULT
        return configured, self.notes.get(FORMER) or before

    def note(self, notes: dict, text: str | None = None) -> None:
        body: dict = {"metadata": {"annotations": notes, "resourceVersion": self.found["metadata"]["resourceVersion"]}}
        if text is not None:
            body["data"] = {KEY: text}
        self.found = self.client.request("PATCH", MAP_PATH, body, MERGE)

    def check_kernels(self) -> None:
        """Fails where a Node's kernel is too old for nftables mode."""
        nodes = (self.client.get(NODES_PATH) or {}).get("items") or []
        kernels = {node["metadata"]["name"]: node["status"]["nodeInfo"]["kernelVersion"] for node in nodes}
        old = [f"{name} ({release})" for name, release in sorted(kernels.items()) if is_too_old(release)]
        if old:
            raise StepFailure(
                "KernelTooOld",
                f"configuration.kubeProxy.mode: nftables needs kernel 5.13 or newer, and these Nodes have an older one: {', '.join(old[:8])}:"
                " install a newer one there, or take the mode back",
            )

    def roll(self, mode: str, timeout: float) -> None:
        """Makes the Pods anew, and waits until all of them run."""
        template = {"metadata": {"annotations": {MODE: mode}}}
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": AT_ONCE, "maxSurge": 0}}
        self.client.request("PATCH", SET_PATH, {"spec": {"updateStrategy": strategy, "template": template}}, STRATEGIC)
        rollouts.wait_for(self.client, [DAEMON_SET], timeout)


def apply(client: Api, configured: str, check: bool, timeout: float = 0) -> list:
    """Has kube-proxy work in this mode; without one, in the one that it had before any was configured. What changed."""
    proxy = KubeProxy(client)
    if not proxy.found:
        if not configured:
            return []
        raise StepFailure(
            "KubeProxyMissing",
            "configuration.kubeProxy.mode: the cluster has no ConfigMap kube-proxy in kube-system: make it and its DaemonSet again (kubeadm"
            " init phase addon kube-proxy), or take the mode back",
        )
    mode, former = proxy.wanted(configured)
    if not mode:
        return []
    changes = proxy.mode != mode or ROLLS_OUT in proxy.notes
    is_noted = proxy.notes.get(FORMER, "") == former
    if not changes and is_noted:
        return []
    if check:
        return [f"kube-proxy's mode {mode}" if changes else "ConfigMap kube-proxy"]
    if changes:
        if mode == NFTABLES:
            proxy.check_kernels()
        # With the note first, so that an attempt that is cut short anywhere is taken up.
        proxy.note({FORMER: proxy.notes.get(FORMER) or former, ROLLS_OUT: mode}, kubeadm_config.with_scalar(proxy.text, "mode", mode))
        proxy.roll(mode, timeout)
    proxy.note({FORMER: former or None, ROLLS_OUT: None})
    return [f"kube-proxy's mode {mode}" if changes else "ConfigMap kube-proxy"]
