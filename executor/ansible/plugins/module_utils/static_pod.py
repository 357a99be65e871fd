# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The smoke test's Pod on a worker: static, so that its own kubelet alone runs it, and its result is on this machine."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import signal
import sys

from ansible_collections.clusterwright.cluster.plugins.module_utils import files

# The kubelet's staticPodPath, as kubeadm configures it.
FOLDER = "/etc/kubernetes/manifests"
NAME = "clusterwright-smoke-test"
# One path, so that the next test removes what one that was cut off has left.
MANIFEST = f"{FOLDER}/{NAME}.json"
NAMESPACE = "kube-system"
PODS = "/var/lib/kubelet/pods"
MESSAGE_LIMIT = 4096


def make_folder() -> None:
    """kubeadm makes it on control planes alone. A kubelet learns at once of a file in a directory that it knows, and of one in a new
    directory within its fileCheckFrequency, 20 seconds."""
    os.makedirs(FOLDER, mode=0o700, exist_ok=True)


def manifest(pod: dict, uid: str) -> dict:
    """The Pod as the kubelet's. With a UID of its own no result of another test is taken for its own."""
    return {**pod, "metadata": {**pod["metadata"], "name": NAME, "namespace": NAMESPACE, "uid": uid}}


def remove() -> None:
    """Lets the kubelet end the Pod."""
    files.remove(MANIFEST)


def end(_number: int, _frame: object) -> None:
    """Lets a program that is asked to end clean up."""
    sys.exit(128 + signal.SIGTERM)


@contextlib.contextmanager
def running(pod: dict):
    """The kubelet is to run the Pod for as long as the block is at work, and no longer, also when this process is asked to end."""
    make_folder()
    before = signal.signal(signal.SIGTERM, end)
    try:
        files.write(MANIFEST, json.dumps(pod) + "\n", files.SECRET)
        yield
    finally:
        remove()
        signal.signal(signal.SIGTERM, before)


def termination_message(uid: str) -> str:
    """What the Pod's container wrote last, empty as long as it wrote nothing: the kubelet keeps it in a file that is mounted into it."""
    found = ""
    for path in glob.glob(f"{PODS}/{uid}/containers/*/*"):
        try:
            with open(path, encoding="utf-8", errors="replace") as source:
                found = source.read(MESSAGE_LIMIT) or found
        except OSError:
            continue
    return found


def mirror_path(node: str) -> str:
    """Where the API has what the kubelet tells of the Pod."""
    return f"/api/v1/namespaces/{NAMESPACE}/pods/{NAME}-{node.lower()}"


def is_mirror(pod: dict | None, uid: str) -> bool:
    """Whether the API's Pod is the one of this test."""
    annotations = ((pod or {}).get("metadata") or {}).get("annotations") or {}
    return annotations.get("kubernetes.io/config.mirror") == uid
