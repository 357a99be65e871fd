# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What a cluster encrypts with, as a run has it, made into the EncryptionConfiguration of an API server.

A line each: the first one encrypts, and a second one, which will or did, decrypts beside it. It is a key, NAME:SECRET, of a cluster's first
key SECRET alone, for Secrets; or JSON with secretbox ({name, secret}) or kms ({name, endpoint, timeoutSeconds}) and resources."""

from __future__ import annotations

import json

from ansible_collections.clusterwright.cluster.plugins.module_utils.encryption_keys import covers

FIRST_KEY = "key1"
FIRST_RESOURCES = ["secrets"]
# Whoever reads what was written before encryption.
IDENTITY = {"identity": {}}


def schemes(text: str) -> list:
    """{secretbox} or {kms}, and resources, of each line."""
    return [scheme(line) for line in text.split("\n") if line.strip()]


def scheme(line: str) -> dict:
    line = line.strip()
    if line.startswith("{"):
        return {"resources": FIRST_RESOURCES, **json.loads(line)}
    name, colon, secret = line.partition(":")
    key = {"name": name, "secret": secret} if colon else {"name": FIRST_KEY, "secret": line}
    return {"resources": FIRST_RESOURCES, "secretbox": key}


def provider(of: dict, resource: str) -> dict:
    """What encrypts a resource. API servers take no two plug-ins of one name, and each list of providers has its own: so the name is also
    the resource's."""
    if "secretbox" in of:
        return {"secretbox": {"keys": [of["secretbox"]]}}
    plugin = of["kms"]
    name = f"{plugin['name']}.{resource}"
    return {"kms": {"apiVersion": "v2", "name": name, "endpoint": plugin["endpoint"], "timeout": f"{plugin['timeoutSeconds']}s"}}


def providers(found: list, resource: str) -> list:
    """What encrypts and decrypts a resource, the one that encrypts first."""
    first, others = found[0], [other for other in found[1:] if covers(other["resources"], resource)]
    if not covers(first["resources"], resource):
        return [IDENTITY, *(provider(other, resource) for other in others)]
    listed: list = []
    for entry in [first, *others]:
        made = provider(entry, resource)
        same = [there for there in listed if is_same(there, made)]
        if "secretbox" in made and listed and "secretbox" in listed[-1]:
            listed[-1]["secretbox"]["keys"] += [key for key in made["secretbox"]["keys"] if key not in listed[-1]["secretbox"]["keys"]]
        elif not same:
            listed.append(made)
    return [*listed, IDENTITY]


def is_same(one: dict, other: dict) -> bool:
    """Whether both are one plug-in, which may be asked with another patience."""
    return "kms" in one and "kms" in other and one["kms"]["name"] == other["kms"]["name"]


def configuration(text: str) -> str:
    """The EncryptionConfiguration, JSON. Of entries with one resource the first counts: those by name stand before wildcards."""
    found = schemes(text)
    resources = {resource for entry in found for resource in entry["resources"]}
    entries: list = []
    for resource in sorted(resources, key=lambda name: (name.startswith("*"), name)):
        wanted = providers(found, resource)
        same = [entry for entry in entries if entry["providers"] == wanted and is_wildcard(entry["resources"][0]) == is_wildcard(resource)]
        if same:
            same[0]["resources"].append(resource)
        else:
            entries.append({"resources": [resource], "providers": wanted})
    return json.dumps({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": entries})


def is_wildcard(resource: str) -> bool:
    return resource.startswith("*")


def plugins(text: str) -> list:
    """The plug-ins, {name, endpoint, timeoutSeconds}, each once."""
    found = [entry["kms"] for entry in schemes(text) if "kms" in entry]
    return [plugin for index, plugin in enumerate(found) if plugin["endpoint"] not in [before["endpoint"] for before in found[:index]]]
