# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Programs that lie on this machine ahead of the run that installs them, as they came from the bundle: that run downloads nothing."""

from __future__ import annotations

import hashlib
import os
import urllib.parse

FOLDER = "/var/cache/clusterwright/prefetched"
CHUNK = 1 << 20


def place(artifact: dict) -> str:
    """Where the artifact's file lies once it was prefetched."""
    return os.path.join(FOLDER, f"{urllib.parse.quote(artifact['name'], safe='')}@{artifact['sha256'].lower()}")


def find(artifact: dict) -> str | None:
    """The file's path; None where there is none, or it is not what it was."""
    path, digest = place(artifact), hashlib.sha256()
    try:
        with open(path, "rb") as source:
            while chunk := source.read(CHUNK):
                digest.update(chunk)
    except FileNotFoundError:
        return None
    return path if digest.hexdigest() == artifact["sha256"].lower() else None


def keep(artifact: dict, downloaded: str) -> None:
    """Takes a file that was downloaded and verified, in place of what was prefetched of the program before."""
    path = place(artifact)
    os.makedirs(FOLDER, mode=0o700, exist_ok=True)
    os.chmod(downloaded, 0o700)
    os.replace(downloaded, path)
    of_this = os.path.basename(path).partition("@")[0]
    for name in os.listdir(FOLDER):
        if name.partition("@")[0] == of_this and name != os.path.basename(path):
            os.unlink(os.path.join(FOLDER, name))


def is_kept(path: str) -> bool:
    """Whether this is the path of a file that was prefetched."""
    return os.path.dirname(path) == FOLDER
