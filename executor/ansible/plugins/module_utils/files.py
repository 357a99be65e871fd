# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Writes small files whole or not at all, and only when they differ."""

from __future__ import annotations

import os
import tempfile

from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

SECRET = 0o600


def write(path: str, content: str, mode: int = 0o644, check: bool = False) -> bool:
    """Makes the file hold `content` with `mode`, owned by root. True when it did not."""
    if os.path.normpath(path) != path or not os.path.isabs(path):
        raise StepFailure("InvalidVariables", f"{path!r} is no path that may be written: parts of it are `..` or empty")
    data = content.encode("utf-8")
    try:
        with open(path, "rb") as current:
            same = current.read() == data
        status = os.stat(path)
        same = same and (status.st_mode & 0o7777) == mode and status.st_uid == 0
    except FileNotFoundError:
        same = False
    if same:
        return False
    if check:
        return True
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=".cw-", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as new:
            new.write(data)
            new.flush()
            os.fchmod(new.fileno(), mode)
            os.fchown(new.fileno(), 0, 0)
            os.fsync(new.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return True


def write_all(wanted: list, check: bool = False, mode: int = 0o644) -> list:
    """Writes each {path, content, mode} and returns the paths that changed."""
    changed = []
    for entry in wanted or []:
        if write(entry["path"], entry["content"], int(entry.get("mode") or oct(mode)[2:], 8), check):
            changed.append(entry["path"])
    return changed


def remove(path: str, check: bool = False) -> bool:
    """Removes a file or a link. True when there was one."""
    if not os.path.lexists(path):
        return False
    if not check:
        os.unlink(path)
    return True


def overwrite(path: str, content: str) -> None:
    """Writes into the existing file, for the few that may be mount points."""
    with open(path, "w", encoding="utf-8") as out:
        out.write(content)
