# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The bundle's index as this run read it first: all its steps on this machine see the same one, whatever happens to the bundle.

A run is known by its fence, which the guard gives each command. Without a guard nobody knows where a run ends, and nothing is
kept. Only the index is: no address, no login."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile

# On no disk, and removed by a reset.
FOLDER = "/run/clusterwright/index"
FENCE = re.compile(r"[0-9]+-[0-9]+")


def file_of(url: str) -> str:
    """Name of the file for this index in this run; empty without a run."""
    fence = os.environ.get("CLUSTERWRIGHT_FENCE", "")
    if not FENCE.fullmatch(fence):
        return ""
    return f"{fence}.{hashlib.sha256(url.encode('utf-8')).hexdigest()}.json"


def read(url: str) -> bytes | None:
    """What this run has read from there before."""
    name = file_of(url)
    if not name:
        return None
    try:
        with open(os.path.join(FOLDER, name), "rb") as source:
            return source.read()
    except FileNotFoundError:
        return None


def keep(url: str, content: bytes) -> None:
    """Keeps it for this run, and nothing of other runs."""
    name = file_of(url)
    if not name:
        return
    os.makedirs(FOLDER, mode=0o700, exist_ok=True)
    os.chmod(FOLDER, 0o700)
    run = name.partition(".")[0]
    for other in os.listdir(FOLDER):
        if other.partition(".")[0] != run:
            os.unlink(os.path.join(FOLDER, other))
    # Made with mode 0600.
    descriptor, temporary = tempfile.mkstemp(prefix=f"{run}.", dir=FOLDER)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(content)
        os.replace(temporary, os.path.join(FOLDER, name))
    except BaseException:
        os.unlink(temporary)
        raise
