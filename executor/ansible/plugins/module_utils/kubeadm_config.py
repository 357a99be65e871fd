# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The cluster's configuration as kubeadm keeps it in the API: what the next machine, upgrade or renewal goes by. kubeadm writes it in
one plain form, of which a few fields are read and set here; the rest stays as it is, character by character."""

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
# On the ConfigMap: the names that the cluster's owner has ever given the API servers' certificates, as JSON.
GIVEN = "clusterwright.dev/given-names"
# Also there: the names of the flags that the cluster's owner has set, by their components.
ARGUMENTS = "clusterwright.dev/given-arguments"
VALIDITY = "certificateValidityPeriod"
VERSION = "kubernetesVersion"
# As Go writes a duration of whole seconds: 8760h0m0s.
DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
# How often it is written while others write, and what the API says then.
ATTEMPTS = 10
CONFLICT = 409


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


def scalar(text: str, key: str) -> str:
    """The value of a key of the outermost level, empty when there is none."""
    found = re.search(rf"^{re.escape(key)}:[ ]*(\S+)[ ]*$", text, re.MULTILINE)
    return found.group(1).strip("\"'") if found else ""


def with_scalar(text: str, key: str, value: str) -> str:
    """The text with another value there, also where it had none."""
    line = f"{key}: {value}\n"
    changed, count = re.subn(rf"^{re.escape(key)}:.*\n?", line, text, count=1, flags=re.MULTILINE)
    return changed if count else f"{text.rstrip()}\n{line}"


def with_dns_tag(text: str, tag: str) -> str:
    """The text with another tag of CoreDNS' image. Without one kubeadm would take the version that it was built with."""
    line = f"  imageTag: {tag}\n"
    found = block(text, ("dns",))
    if not found:
        return re.sub(r"^dns:.*\n", "", text, flags=re.MULTILINE).rstrip() + f"\ndns:\n{line}"
    begin, end, _indent = found
    inside, count = re.subn(r"^  imageTag:.*\n", line, text[begin:end], count=1, flags=re.MULTILINE)
    return text[:begin] + (inside if count else inside + line) + text[end:]


def seconds(duration: str) -> int | None:
    """How many seconds a duration is; none for what is no whole number of them."""
    found = DURATION.fullmatch(duration)
    if not duration or not found:
        return None
    hours, minutes, rest = (int(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + rest


def init_configuration(params: dict) -> dict:
    """What kubeadm has to know of the machine beside the cluster's configuration: its `node_name`, and `address` and `port` of its API
    server."""
    return {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": params["address"], "bindPort": params["port"]},
        "nodeRegistration": {"name": params["node_name"]},
    }


def read(client: Api) -> tuple:
    """(the ConfigMap, the text)."""
    found = client.get(PATH)
    text = ((found or {}).get("data") or {}).get(KEY)
    if not text:
        raise StepFailure("KubeconfigMissing", "there is no ConfigMap kubeadm-config in kube-system: is this a cluster of kubeadm's?")
    return found, text


def remembered(found: dict, annotation: str, nothing):
    """What the ConfigMap has noted there, as JSON; `nothing`, which is of the same kind, where it has not."""
    text = (found["metadata"].get("annotations") or {}).get(annotation, "null")
    try:
        value = json.loads(text)
    except (ValueError, TypeError):
        return nothing
    return value if isinstance(value, type(nothing)) else nothing


def given_names(found: dict) -> list:
    """The names that the cluster's owner has given, so far as is remembered."""
    return [str(name) for name in remembered(found, GIVEN, [])]


def edit(client: Api, change) -> str:
    """Writes what `change(found, text)` makes of the text, and what it notes (values by their annotations; None: nothing). Control planes
    that join at once all write here: where somebody else has written meanwhile, it is read and asked again. The text as it stands."""
    for _again in range(ATTEMPTS):
        found, text = read(client)
        wanted, notes = change(found, text)
        if wanted == text and is_noted(found, notes):
            return text
        try:
            write(client, found, wanted, notes)
            return wanted
        except Refused as refused:
            last = refused
            if refused.status != CONFLICT:
                break
    raise StepFailure("ManifestRefused", f"failed to write ConfigMap kubeadm-config: {last}") from last


def is_noted(found: dict, notes: dict | None) -> bool:
    return all(remembered(found, annotation, type(value)()) == value for annotation, value in (notes or {}).items())


def write(client: Api, found: dict, text: str, notes: dict | None) -> None:
    """Raises Refused when somebody else wrote meanwhile."""
    metadata: dict = {"resourceVersion": found["metadata"]["resourceVersion"]}
    if notes:
        metadata["annotations"] = {annotation: json.dumps(value) for annotation, value in notes.items()}
    client.request("PATCH", PATH, {"metadata": metadata, "data": {KEY: text}}, MERGE)
