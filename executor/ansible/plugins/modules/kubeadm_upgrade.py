#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Brings what kubeadm made on this machine to another version of Kubernetes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubeadm_upgrade
short_description: kubeadm upgrade apply or node, until this machine's control plane serves the version
description:
  - On a control plane, C(apply) where the cluster's configuration still says an older version, else C(node). On a worker always C(node),
    and nothing while the configuration says an older version.
  - Needs kubeadm of the version. The kubelet's program is not touched, etcd and certificates are not kubeadm's.
  - A manifest that is missing, since kubeadm was cut off, is put back from the newest backup first. An attempt that was cut short is
    made again; what it had done is passed over.
  - CoreDNS keeps its configuration and gets the image, once all API servers are of the version. One that is not there is not made.
  - In check mode, tells what is missing. Of the kubelet's configuration it proves that kubeadm of the version wrote it here, from
    the cluster's configuration and the patches as they are now, and that it was not changed since.
options:
  role:
    description: What the machine is.
    type: str
    choices: [control-plane, worker]
    required: true
  identity:
    description: Identity of the cluster for which kubeadm must have succeeded here.
    type: str
    required: true
  version:
    description: Version of Kubernetes, with v.
    type: str
    required: true
  image_repository:
    description: Where the images are.
    type: str
    required: true
  coredns_version:
    description: Tag of CoreDNS' image.
    type: str
    required: true
  kube_proxy:
    description: Whether the cluster has kube-proxy. One that has not gets none, and a DaemonSet of that name is its owner's.
    type: bool
    default: true
  image_pull_policy:
    description: Whether kubeadm pulls images.
    type: str
    choices: [Always, IfNotPresent, Never]
    default: IfNotPresent
  patches:
    description: Content of this machine's patches by the names of their files, for kubeadm to lay over what it writes.
    type: dict
    default: {}
  kubelet_settings:
    description: What the cluster's configuration says of the kubelet; the patches have it.
    type: dict
    default: {}
  ignored_checks:
    description: Names of kubeadm's checks that this machine may fail.
    type: list
    elements: str
    default: []
  timeout_seconds:
    description: For each component to come up with its new manifest, and again for what this waits for itself.
    type: int
    default: 300
extends_documentation_fragment:
  - clusterwright.cluster.arguments.apiserver
  - clusterwright.cluster.arguments.node
author:
  - Clusterwright developers
"""

import hashlib
import json
import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    api,
    control_plane,
    coredns,
    files,
    healthz,
    kubeadm_config,
    kubeadm_program,
    kubeconfigs,
    kubelet,
    manifest_backups,
    membership,
    prompt_start,
    rollouts,
    static_pod,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, Refused, wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.versions import rank

KUBELET_CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/kubelet-config"
KUBE_PROXY = "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy"
APISERVERS = "/api/v1/namespaces/kube-system/pods?labelSelector=component%3Dkube-apiserver"
# kubeadm knows no CoreDNS that is newer than itself: it would fail in these checks, and in this phase.
COREDNS_CHECKS = ("CoreDNSUnsupportedPlugins", "CoreDNSMigration")
COREDNS_PHASE = "addon/coredns"
# Beside what the cluster's configuration says.
KUBE_PROXY_PHASE = "addon/kube-proxy"
# The only one of the checks of init and join that there is before an upgrade as well.
SHARED_CHECKS = ("SystemVerification",)
# A Job that kubeadm waits 15 s for before it does anything: too short on a busy machine.
NO_JOB = "[ERROR CreateJob]"
JOB_ATTEMPTS = 3


def upgrade_configuration(params: dict) -> dict:
    """kubeadm's configuration of an upgrade: of `apply` and `node` alike."""
    both = {
        "certificateRenewal": False,
        "etcdUpgrade": False,
        "ignorePreflightErrors": [*(check for check in params["ignored_checks"] if check in SHARED_CHECKS), *COREDNS_CHECKS],
        "imagePullPolicy": params["image_pull_policy"],
        "patches": {"directory": kubelet.PATCHES},
        "skipPhases": [COREDNS_PHASE, *([] if params["kube_proxy"] else [KUBE_PROXY_PHASE])],
    }
    return {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "UpgradeConfiguration",
        "apply": {"kubernetesVersion": params["version"], **both},
        "node": both,
        "timeouts": {"upgradeManifests": f"{params['timeout_seconds']}s"},
    }


def verb(role: str, configured: str, wanted: str) -> str:
    """Which of kubeadm's commands it takes, by the version that the cluster's configuration says. A `node` would make what that says."""
    if rank(configured) > rank(wanted):
        raise StepFailure(
            "InvalidVariables",
            f"kube_version is {wanted}, and the cluster's configuration says {configured} already: kubeadm never goes back",
        )
    if rank(configured) == rank(wanted):
        return "node"
    if role == "worker":
        raise StepFailure(
            "ControlPlaneTooOld",
            f"the cluster's configuration says {configured}, and this worker is to be of {wanted}: upgrade the control planes first",
        )
    return "apply"


def image_version(manifest: str, component: str) -> str:
    """The tag of the component's image in its manifest; empty where there is none."""
    try:
        with open(f"{static_pod.FOLDER}/{manifest}.yaml", encoding="utf-8") as source:
            lines = [line.strip() for line in source]
    except OSError:
        return ""
    images = [line.removeprefix("image:").strip().strip('"') for line in lines if line.startswith("image:")]
    return next((image.rpartition(":")[2] for image in images if f"/{component}:" in image), "")


def digest_of(paths: list) -> str:
    total = hashlib.sha256()
    for path in sorted(paths):
        with open(path, "rb") as source:
            total.update(f"{path}\0".encode() + source.read() + b"\0")
    return total.hexdigest()


def asked(question):
    """What the API answers."""
    try:
        return question()
    except (OSError, Refused) as error:
        raise StepFailure("ApiserverNotReady", f"failed to ask the API: {error}") from error


class Upgrade:
    """The work on one machine."""

    def __init__(self, params: dict) -> None:
        self.params = params
        self.version = params["version"]
        self.is_control_plane = params["role"] == "control-plane"
        self.patches = kubelet.patch_files(params["patches"])
        self.client = Api(api.ADMIN if self.is_control_plane else api.KUBELET)
        if self.is_control_plane:
            self.client.server = f"https://{params['address']}:{params['port']}"

    def wait(self, check, reason: str, message) -> object:
        return wait(check, self.params["timeout_seconds"], reason, lambda: message() + units.journal("kubelet.service"), 0.5)

    def configuration(self) -> tuple:
        """(ConfigMap kubeadm-config, its text). An API server that has just come up answers, and lets nobody in for some seconds."""
        self.wait(
            lambda: self.client.ask(kubeadm_config.PATH),
            "ApiserverNotReady",
            lambda: f"{self.client.server} does not give ConfigMap kubeadm-config in kube-system",
        )
        return asked(lambda: kubeadm_config.read(self.client))

    def configured(self) -> str:
        """The version that the cluster's configuration says."""
        return kubeadm_config.scalar(self.configuration()[1], kubeadm_config.VERSION)

    def proof(self) -> dict:
        """What the kubelet's configuration on this machine was made of, and what it is."""
        found = asked(lambda: self.client.get(KUBELET_CONFIG_MAP)) or {}
        source = json.dumps(found.get("data"), sort_keys=True)
        patches = [os.path.join(kubelet.PATCHES, name) for name in os.listdir(kubelet.PATCHES)] if os.path.isdir(kubelet.PATCHES) else []
        return {
            "version": self.version,
            "source": hashlib.sha256(source.encode()).hexdigest(),
            "patches": digest_of(patches),
            "config": digest_of([kubelet.CONFIG]) if os.path.exists(kubelet.CONFIG) else "",
        }

    def served(self) -> str:
        return (self.client.ask("/version") or {}).get("gitVersion", "")

    def missing(self) -> str:
        """What is not yet as kubeadm of the version leaves it; empty when all is."""
        if self.is_control_plane:
            served = self.served()
            if served != self.version:
                return f"the API server serves {served or 'nothing'}"
            for component in control_plane.COMPONENTS:
                version = image_version(component, component)
                if version != self.version:
                    return f"the manifest of {component} has version {version or '(none)'}"
        configured = self.configured()
        if configured != self.version:
            return f"the cluster's configuration says {configured}"
        if files.write_all(self.patches, check=True):
            return f"the patches in {kubelet.PATCHES} are not those wanted"
        if membership.read(membership.KUBEADM).get("upgraded") != self.proof():
            return f"{kubelet.CONFIG} is not what kubeadm {self.version} makes of the cluster's kubelet-config and the patches"
        if self.is_control_plane and self.params["kube_proxy"] and self.is_last():
            # kubeadm rolls it on the machine that is upgraded last, and on none where the last one was removed instead.
            image = rollouts.image(asked(lambda: self.client.get(KUBE_PROXY)), "kube-proxy")
            if image and image.rpartition(":")[2] != self.version:
                return f"kube-proxy has the image {image}"
        return ""

    def prepare(self) -> None:
        """Makes the machine such that kubeadm can begin."""
        if self.is_control_plane:
            manifest_backups.put_back(control_plane.COMPONENTS)
        seen: list = [False, ""]

        def is_healthy() -> bool:
            seen[:] = healthz.answer(healthz.KUBELET)
            return seen[0]

        self.wait(is_healthy, "KubeletNotHealthy", lambda: f"the kubelet is not healthy: {seen[1]}")
        if self.is_control_plane:
            self.wait_for_components()
        os.makedirs(kubelet.PATCHES, mode=0o755, exist_ok=True)
        files.write_all(self.patches)

    def wait_for_components(self) -> None:
        """Until all that runs on this machine of the control plane is healthy."""
        sick: dict = {}

        def are_healthy() -> bool:
            nonlocal sick
            sick = control_plane.unhealthy(list(control_plane.COMPONENTS), self.params["address"], self.params["port"])
            return not sick

        self.wait(are_healthy, "ApiserverNotReady", lambda: "; ".join(f"{name} is not healthy: {said}" for name, said in sick.items()))

    def run(self) -> str:
        """Runs kubeadm; its command."""
        _found, text = self.configuration()
        command = verb(self.params["role"], kubeadm_config.scalar(text, kubeadm_config.VERSION), self.version)
        if command == "apply":
            tag = self.params["coredns_version"]
            kubeadm_config.edit(self.client, lambda _found, text: (kubeadm_config.with_dns_tag(text, tag), None))
        retries = iter(range(JOB_ATTEMPTS - 1))
        with prompt_start.watched(list(control_plane.COMPONENTS) if self.is_control_plane else []):
            kubeadm_program.run(
                ["upgrade", command, *(["--yes"] if command == "apply" else [])],
                json.dumps(upgrade_configuration(self.params)),
                self.params["node_name"],
                # Three components one after the other, and what comes before and after them.
                (len(control_plane.COMPONENTS) + 1) * self.params["timeout_seconds"],
                lambda output: NO_JOB in output.err and next(retries, None) is not None,
            )
        # A kubeconfig that kubeadm writes believes the first authority alone.
        kubeconfigs.trust(False)
        return command

    def finish(self) -> None:
        if self.is_control_plane:
            self.wait(
                lambda: self.served() == self.version,
                "ApiserverNotReady",
                lambda: f"the API server serves {self.served() or 'nothing'}, and not {self.version}",
            )
            self.wait_for_components()
        self.configuration()
        membership.save(membership.KUBEADM, {**membership.read(membership.KUBEADM), "upgraded": self.proof()})
        kubelet.record(self.params["kubelet_settings"])
        manifest_backups.prune()

    def is_last(self) -> bool:
        """Whether all API servers are of the version: what they share may be brought to it."""
        pods = asked(lambda: self.client.get(APISERVERS)).get("items") or []
        images = [container["image"] for pod in pods for container in pod["spec"]["containers"]]
        return bool(images) and all(image.endswith(f"/kube-apiserver:{self.version}") for image in images)

    def coredns(self, check: bool) -> tuple:
        """(whether CoreDNS is not as it is wanted, what there is to say of it). Gives it its image, not in check mode."""
        wanted = f"{self.params['image_repository']}/coredns/coredns:{self.params['coredns_version']}"
        present = asked(lambda: coredns.present(self.client))
        if not present:
            return False, "there is no Deployment kube-system/coredns of kubeadm's: CoreDNS is left to whoever runs it"
        if present == wanted:
            return False, ""
        if not check:
            asked(lambda: coredns.roll(self.client, wanted, self.params["timeout_seconds"]))
        return True, f"CoreDNS: {present} -> {wanted}"


def play(upgrade: Upgrade, check: bool) -> dict:
    missing = "a manifest is missing" if needs_repair(upgrade) else upgrade.missing()
    ran, rolls, said = None, False, ""
    if missing and not check:
        upgrade.prepare()
        ran = upgrade.run()
        upgrade.finish()
    if upgrade.is_control_plane and (ran or not missing) and upgrade.is_last():
        rolls, said = upgrade.coredns(check)
    messages = [f"kubeadm upgrade {ran}" if ran else missing, said]
    return {"changed": bool(missing or rolls), "ran": ran, "msg": "; ".join(filter(None, messages)) or f"all is of {upgrade.version}"}


def needs_repair(upgrade: Upgrade) -> bool:
    """Whether a manifest is missing: nobody answers then, and nobody is asked before it is back."""
    paths = [f"{static_pod.FOLDER}/{component}.yaml" for component in control_plane.COMPONENTS]
    return upgrade.is_control_plane and not all(os.path.lexists(path) for path in paths)


def work(call) -> dict:
    membership.check_kubeadm(call.params["identity"])
    return play(Upgrade(call.params), call.check_mode)
