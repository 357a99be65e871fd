# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The directories of KMS plug-ins' sockets that this machine's API server has mounted: those that a run wants, and those that the
EncryptionConfiguration in its place needs. So a mount is there before the API server reads of the plug-in, and goes after it no more does."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable

from ansible_collections.clusterwright.cluster.plugins.module_utils import certificate_places, control_plane, encryption_keys
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

SCHEME = "unix://"
NAME = "clusterwright-kms-"
DIGITS = 8


def volumes_of(endpoints: Iterable[str]) -> list:
    """Those of the directories of these sockets, each once."""
    return [volume(directory) for directory in sorted({os.path.dirname(endpoint[len(SCHEME):]) for endpoint in endpoints if endpoint.startswith(SCHEME)})]


def needed() -> list:
    """Those that the file in its place needs."""
    found = encryption_keys.entries(text(certificate_places.ENCRYPTION))
    return volumes_of(provider.endpoint for _resources, providers in found for provider in providers)


def volume(directory: str) -> dict:
    digest = hashlib.sha256(directory.encode()).hexdigest()[:DIGITS]
    return {"name": f"{NAME}{digest}", "path": directory, "read_only": True}


def with_needed(component: str, volumes: list) -> list:
    """The volumes of a component, with those of plug-ins that are in use."""
    if component != control_plane.APISERVER:
        return volumes
    given = [entry["path"] for entry in volumes]
    return volumes + [entry for entry in needed() if entry["path"] not in given]
