# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The cluster's configuration as kubeadm keeps it in the API: what the next machine, upgrade or renewal goes by. kubeadm writes it in
one plain form, of which two lists are read and set here; the rest stays as it is, character by character."""

from __future__ import annotations

import json
import re

from ansible_collections.clusterwright.cluster.plugins.module_utils.api import MERGE, Api, Refused
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

PATH = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
KEY = "ClusterConfiguration"
ENDPOINTS = ("etcd", "external", "endpoints")
# What newer versions of kubeadm note beside them.
HTTP_ENDPOINTS = ("etcd", "external", "httpEndpoints")
NAMES = ("apiServer", "certSANs")


def block(text: str, path: tuple) -> tuple | None:
    """(begin, end, indent) of the items of the list below these keys."""
    begin, end, indent = 0, len(text), 0
    for key in path:
        found = re.compile(rf"^ {{{indent}}}{re.escape(key)}:[ ]*\n", re.MULTILINE).search(text, begin, end)
        if not found:
            return None
        begin = found.end()
        # All that is deeper, and items of a list that stand as deep as their key.
        inside = re.compile(rf"(?: {{{indent}}}(?: +|- ).*\n)*").match(text, begin, end)
        end = inside.end() if inside else begin
        indent += 2
    return begin, end, indent - 2


def items(text: str, path: tuple) -> list:
    """The list, empty when there is none."""
    found = block(text, path)
    if not found:
        return []
    return [line.strip()[2:].strip("\"'") for line in text[found[0]:found[1]].splitlines() if line.strip().startswith("- ")]


def with_items(text: str, path: tuple, values: list) -> str:
    """The text with another list in that place."""
    found = block(text, path)
    if not found:
        raise StepFailure("ManifestRefused", f"ConfigMap kubeadm-config has no list {'.'.join(path)}: correct it by hand")
    begin, end, indent = found
    return text[:begin] + "".join(f"{' ' * indent}- {json.dumps(value)}\n" for value in values) + text[end:]


def read(client: Api) -> tuple:
    """(the ConfigMap, the text)."""
    found = client.get(PATH)
    text = ((found or {}).get("data") or {}).get(KEY)
    if not text:
        raise StepFailure("KubeconfigMissing", "there is no ConfigMap kubeadm-config in kube-system: is this a cluster of kubeadm's?")
    return found, text


def write(client: Api, found: dict, text: str) -> None:
    """Writes the text, unless somebody else wrote meanwhile."""
    body = {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "data": {KEY: text}}
    try:
        client.request("PATCH", PATH, body, MERGE)
    except Refused as refused:
        raise StepFailure("ManifestRefused", f"failed to write ConfigMap kubeadm-config: {refused}") from refused
