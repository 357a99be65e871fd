# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The Pods of a node with the cluster's authorities mounted, as every Pod with a service account's token has them, and which of their
containers began before what is there now. Most clients read it at their start alone."""

from __future__ import annotations

import hashlib
import os
import time
import urllib.parse

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    api,
    apiserver_process,
    certificate_places,
    certificates,
    component_process,
    membership,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

PODS = "/var/lib/kubelet/pods"
CONFIG_MAP = "kube-root-ca.crt"
MIRROR = "kubernetes.io/config.mirror"
# {authorities, since}: since when all Pods here are known to have had these. The kubelet writes their files anew with each new token.
SEEN = f"{membership.HOME}/pod-authorities.json"


def wanted() -> list:
    return certificates.all_in(text(certificate_places.pki("ca")))


def digest() -> str:
    return hashlib.sha256("\n".join(wanted()).encode()).hexdigest()


def note(moment: float) -> None:
    """Notes that all had what is wanted by then; an earlier note of the same stays."""
    if membership.read(SEEN).get("authorities") != digest():
        membership.save(SEEN, {"authorities": digest(), "since": moment})


def since() -> float:
    """Since when all are known to have it; never, as long as that was not noted."""
    known = membership.read(SEEN)
    return float(known["since"]) if known.get("authorities") == digest() else float("inf")


def processes() -> dict:
    """Pids by their cgroup: a container's has its ID in its name."""
    found: dict = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        found.setdefault(text(f"/proc/{pid}/cgroup"), []).append(pid)
    return found


class Container:
    """A container that runs, with the authorities mounted. `volumes` are their files here."""

    def __init__(self, name: str, pid: int, volumes: list) -> None:
        self.name = name
        self.pid = pid
        self.volumes = volumes

    def is_outdated(self) -> bool:
        """Whether it began before the content of the files was there."""
        began = component_process.began(self.pid)
        return began is not None and any(began < min(changed(path), since()) for path in self.volumes)


class Pod:
    """One Pod of this node, as the API has it."""

    def __init__(self, found: dict) -> None:
        self.found = found
        self.uid = found["metadata"]["uid"]
        self.name = f"{found['metadata']['namespace']}/{found['metadata']['name']}"
        self.spec = found["spec"]

    @property
    def is_over(self) -> bool:
        return self.found["status"].get("phase") in ("Succeeded", "Failed") or "deletionTimestamp" in self.found["metadata"]

    @property
    def is_ready(self) -> bool:
        return api.is_ready(self.found)

    @property
    def is_left_alone(self) -> bool:
        """A container that ends well counts as done where it is not always started again; static Pods are the machine's own."""
        return MIRROR in (self.found["metadata"].get("annotations") or {}) or self.spec.get("restartPolicy", "Always") != "Always"

    def volumes(self) -> dict:
        """Files with the authorities, by the volume that has them."""
        files: dict = {}
        for volume in self.spec.get("volumes") or []:
            for source in (volume.get("projected") or {}).get("sources") or []:
                content = source.get("configMap") or {}
                if content.get("name") == CONFIG_MAP:
                    paths = [item["path"] for item in content.get("items") or [{"path": "ca.crt"}]]
                    files[volume["name"]] = [f"{PODS}/{self.uid}/volumes/kubernetes.io~projected/{volume['name']}/{path}" for path in paths]
        return files

    def lacks(self) -> bool:
        """Whether one of its files has not all of the authorities yet. One that the kubelet has not made yet will have them."""
        present = [path for paths in self.volumes().values() for path in paths if os.path.exists(path)]
        return any(not set(wanted()) <= set(certificates.all_in(text(path))) for path in present)

    def containers(self) -> list:
        """Those that run and mount them. One for a look around is none: it would not be started again."""
        files, cgroups = self.volumes(), processes()
        status = self.found["status"]
        statuses = {entry["name"]: entry for kind in ("containerStatuses", "initContainerStatuses") for entry in status.get(kind) or []}
        found = []
        for container in [*self.spec["containers"], *(self.spec.get("initContainers") or [])]:
            mounted = [mount["name"] for mount in container.get("volumeMounts") or [] if mount["name"] in files]
            identity = statuses.get(container["name"], {}).get("containerID", "").rpartition("//")[2]
            pids = [pid for cgroup, inside in cgroups.items() if identity and identity in cgroup for pid in inside]
            if mounted and pids:
                found.append(Container(container["name"], min(pids, key=started), [path for name in mounted for path in files[name]]))
        return found

    def outdated(self) -> list:
        return [container for container in self.containers() if container.is_outdated()]


def started(pid: int) -> tuple:
    """What the first of a container's processes has the least of."""
    return int(apiserver_process.state(pid).get("ExecMainStartTimestampMonotonic", "0") or "0") or time.time_ns(), pid


def changed(path: str) -> float:
    """When the file's content came; never for one that is not there."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def pods(client: api.Api, node_name: str) -> list:
    """The Pods of this node that are at work and have the authorities mounted."""
    selector = urllib.parse.quote(f"spec.nodeName={node_name}")
    found = [Pod(entry) for entry in client.request("GET", f"/api/v1/pods?fieldSelector={selector}").get("items") or []]
    return sorted((pod for pod in found if not pod.is_over and pod.volumes()), key=lambda pod: pod.name)
