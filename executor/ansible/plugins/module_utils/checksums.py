# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The checksum files that projects publish beside their releases."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle_index import SHA256
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


def find(text: str, name: str, url: str) -> str:
    """The SHA-256 that the text from `url` gives for the file of that name: its only word, or that of the line with the name."""
    words = text.split()
    if len(words) == 1:
        found = {words[0].lower()}
    else:
        lines = [line.split(None, 1) for line in text.splitlines() if len(line.split(None, 1)) == 2]
        found = {digest.lower() for digest, file in lines if file.strip().removeprefix("*").rpartition("/")[2] == name}
        found = {digest for digest in found if SHA256.fullmatch(digest)}
    if len(found) != 1 or not SHA256.fullmatch(next(iter(found))):
        problem = "has several checksums" if len(found) > 1 else "has no SHA-256"
        raise StepFailure("ArtifactIndexInvalid", f"{url} {problem} of {name}: without it nothing of {name} is used; look at {url}")
    return found.pop()
