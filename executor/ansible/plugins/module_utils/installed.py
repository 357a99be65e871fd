# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Programs of the bundle on this machine: how they come into their places, and whether they are there as it is remembered."""

from __future__ import annotations

import os
import shutil


def place(source, path: str) -> None:
    """Writes an executable beside its place and moves it there: a running program keeps its old file."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    temporary = f"{path}.cw-new"
    with open(temporary, "wb") as out:
        shutil.copyfileobj(source, out, 1 << 20)
    os.chmod(temporary, 0o755)
    os.replace(temporary, path)


def fingerprint(path: str) -> list:
    """Size and time of change: enough to see that a file is the one that we put there, without reading 80 MB."""
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns]


def in_place(record: dict, artifact: dict, directory: str) -> bool:
    """Whether the files of this very artifact are where they were put, untouched."""
    if record.get("sha256") != artifact["sha256"] or record.get("directory") != directory:
        return False
    try:
        return all(fingerprint(path) == known for path, known in record["files"].items())
    except OSError:
        return False
