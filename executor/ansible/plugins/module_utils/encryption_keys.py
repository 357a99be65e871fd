# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""An EncryptionConfiguration of an API server: what encrypts each resource, and what decrypts it."""

from __future__ import annotations

import json
from collections.abc import Iterator

# How values begin that an API server has encrypted, whatever with.
ENCRYPTED = b"k8s:enc:"


class Provider:
    """What encrypts: a key of secretbox, a KMS plug-in, or nothing, where `prefix` is empty."""

    def __init__(self, prefix: str, name: str, secret: str = "", endpoint: str = "") -> None:
        self.prefix, self.name, self.secret, self.endpoint = prefix.encode(), name, secret, endpoint

    def decrypts(self, other: Provider) -> bool:
        return (self.prefix, self.secret, self.endpoint) == (other.prefix, other.secret, other.endpoint)

    def wrote(self, value: bytes) -> bool:
        return value.startswith(self.prefix) if self.prefix else not value.startswith(ENCRYPTED)

    def __str__(self) -> str:
        return f"encrypted with {self.name}" if self.prefix else "plain"


def listed(entry: dict) -> Iterator[Provider]:
    """Those of one list of providers, in their order."""
    for provider in entry["providers"]:
        for key in provider.get("secretbox", {}).get("keys", []):
            yield Provider(f"k8s:enc:secretbox:v1:{key['name']}:", key["name"], secret=key["secret"])
        if "kms" in provider:
            plugin = provider["kms"]
            yield Provider(f"k8s:enc:kms:v2:{plugin['name']}:", plugin["name"], endpoint=plugin["endpoint"])
        if "identity" in provider:
            yield Provider("", "identity")


def entries(content: str) -> list:
    """([resources], [Provider]) of each entry. A text that is no such configuration has none."""
    try:
        return [(list(entry["resources"]), list(listed(entry))) for entry in json.loads(content)["resources"]]
    except (AttributeError, KeyError, TypeError, ValueError):
        return []


def matches(pattern: str, resource: str) -> bool:
    return pattern == resource or (pattern.startswith("*.") and pattern[2:] == resource.partition(".")[2])


def covers(resources: list, resource: str) -> bool:
    """Whether the list has it, by its name or by a wildcard; both may be wildcards."""
    return any(matches(pattern, resource) for pattern in resources)


def providers(found: list, resource: str) -> list:
    """What encrypts a resource, and what decrypts it beside: those of the first entry that has it. Others are stored as they are."""
    return next((providers for resources, providers in found if covers(resources, resource)), [Provider("", "identity")])


def unreadable(there: str, comes: str) -> str:
    """A resource that an API server with the one configuration encrypts with what another one, with the other, does not have; empty: none."""
    before, after = entries(there), entries(comes)
    for resources, written in before:
        for resource in resources:
            # Of an entry with a wildcard the resources that others name count with those.
            if written and not any(provider.decrypts(written[0]) for provider in providers(after, resource)):
                return resource
    return ""
