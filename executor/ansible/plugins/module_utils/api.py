# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""A small client of the Kubernetes API, from a kubeconfig that kubeadm wrote: starting kubectl costs more than the request."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import time
import urllib.parse

from ansible_collections.clusterwright.cluster.plugins.module_utils import machine
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.trust import believing

KUBELET = "/etc/kubernetes/kubelet.conf"
ADMIN = "/etc/kubernetes/admin.conf"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Refused(Exception):
    """The API answered, and said no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"HTTP {status}: {message}")
        self.status = status


def field(text: str, name: str) -> str:
    """The value of a scalar in a kubeconfig with one cluster and one user."""
    found = re.search(rf"^\s*{re.escape(name)}:\s*(\S+)\s*$", text, re.MULTILINE)
    return found.group(1).strip('"') if found else ""


def client_pair(text: str) -> str:
    """The client's certificate and key in a kubeconfig's text, or in the files that it names, as PEM; empty parts where it has none."""
    pair = []
    for name in ("client-certificate", "client-key"):
        path = field(text, name)
        pair.append(machine.text(path) if path else base64.b64decode(field(text, f"{name}-data")).decode("utf-8", "replace"))
    return "\n".join(pair)


def in_memory(data: bytes) -> str:
    """A path that reads as the data and is on no disk: the TLS library takes only files."""
    descriptor = os.memfd_create("clusterwright")
    os.write(descriptor, data)
    return f"/proc/self/fd/{descriptor}"


class Api:
    """One server, reached with one kubeconfig."""

    def __init__(self, kubeconfig: str) -> None:
        try:
            with open(kubeconfig, encoding="utf-8") as source:
                text = source.read()
        except OSError as error:
            raise StepFailure("KubeconfigMissing", f"failed to read {kubeconfig}: {error}: is this machine in a cluster?") from error
        self.server = field(text, "server")
        context = believing(cadata=base64.b64decode(field(text, "certificate-authority-data")).decode("ascii"))
        certificate, key = field(text, "client-certificate"), field(text, "client-key")
        if not certificate:
            certificate = in_memory(base64.b64decode(field(text, "client-certificate-data")))
            key = in_memory(base64.b64decode(field(text, "client-key-data")))
        context.load_cert_chain(certificate, key)
        self.context = context

    def request(self, method: str, path: str, body: object = None, kind: str = "application/json", timeout: float = 15):
        """The decoded answer. Raises Refused when the API says no, OSError when it does not answer."""
        address = urllib.parse.urlsplit(self.server)
        connection = http.client.HTTPSConnection(
            address.hostname or "", address.port or 443, timeout=timeout, context=self.context
        )
        try:
            payload = None if body is None else json.dumps(body)
            connection.request(method, path, payload, {"Content-Type": kind, "Accept": "application/json"})
            answer = connection.getresponse()
            data = answer.read()
        except http.client.HTTPException as error:
            raise OSError(f"{self.server}: {error}") from error
        finally:
            connection.close()
        try:
            value = json.loads(data) if data else {}
        except ValueError:
            value = data.decode("utf-8", "replace")
        if answer.status >= 300:
            message = value.get("message", "") if isinstance(value, dict) else str(value)
            raise Refused(answer.status, message or answer.reason)
        return value

    def get(self, path: str):
        """The object, or None when there is none."""
        try:
            return self.request("GET", path)
        except Refused as refused:
            if refused.status == 404:
                return None
            raise

    def ask(self, path: str):
        """Like get, for loops that wait: also None while the API does not answer or does not let us in yet."""
        try:
            return self.get(path)
        except (OSError, Refused):
            return None


def wait(check, timeout: float, reason: str, message, pause: float = 0.2):
    """Calls `check` until it returns something true, and returns that; `message()` tells what is missing in the end."""
    deadline = time.monotonic() + timeout
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > deadline:
            raise StepFailure(reason, f"{message()} (waited {timeout:.0f} s)")
        time.sleep(pause)


def condition(thing: dict | None, kind: str) -> dict:
    """A condition of an object, empty when it has none of the type."""
    for entry in ((thing or {}).get("status") or {}).get("conditions") or []:
        if entry.get("type") == kind:
            return entry
    return {}


def is_ready(node: dict | None) -> bool:
    return condition(node, "Ready").get("status") == "True"
