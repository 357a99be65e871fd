# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""An authority or a key follows another one only where both are trusted: what a machine has as the one that signs, or encrypts, is among
those that come, or these are from another time, or of another cluster."""

from __future__ import annotations

import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import certificate_places, encryption_keys, membership
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

BLOCK = re.compile(r"-----BEGIN (CERTIFICATE|PUBLIC KEY)-----.+?-----END \1-----", re.DOTALL)


def blocks(content: str) -> list:
    """Certificates and public keys in a text, whatever ends their lines."""
    return ["".join(found.group(0).split()) for found in BLOCK.finditer(content)]


def is_cut_off(path: str, there: str, comes: str) -> bool:
    """Whether what signs, or encrypts, on the machine is not trusted, or does not decrypt, by what comes."""
    if path == certificate_places.ENCRYPTION:
        return bool(encryption_keys.unreadable(there, comes))
    signers = blocks(there)
    return bool(signers) and signers[0] not in blocks(comes)


def check(entries: list, paths: tuple) -> None:
    """Refuses entries of {path, content} for these paths that do not have what stands there first."""
    for entry in entries:
        if entry["path"] in paths and is_cut_off(entry["path"], text(entry["path"]), entry["content"]):
            raise StepFailure(
                "AuthorityReplaced",
                f"{entry['path']} has an authority or key that is not among those of the run: nothing was changed. Put into {secret()} what the"
                " cluster's machines have, e.g. from a newer backup; to have it replaced, have it rotated",
            )


def secret() -> str:
    """The Secret of the cluster's keys, by its name where the machine knows it."""
    name = membership.read(membership.CLUSTER).get("name")
    return f"Secret {name}-pki" if name else "the cluster's Secret"
