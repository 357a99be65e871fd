# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Writes small files whole or not at all, and only when they differ."""

from __future__ import annotations

import errno
import os
import tempfile

from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

SECRET = 0o600


def write(path: str, content: str, mode: int = 0o644, check: bool = False, group: int = 0) -> bool:
    """Makes the file hold `content` with `mode`, owned by root and, where one is given, by a group. True when it did not."""
    if os.path.normpath(path) != path or not os.path.isabs(path):
        raise StepFailure("InvalidVariables", f"{path!r} is no path that may be written: parts of it are `..` or empty")
    data = content.encode("utf-8")
    try:
        with open(path, "rb") as current:
            same = current.read() == data
        status = os.stat(path)
        same = same and (status.st_mode & 0o7777) == mode and status.st_uid == 0 and group in (0, status.st_gid)
    except FileNotFoundError:
        same = False
    if same:
        return False
    if check:
        return True
    temporary = stage(path, data, mode, group)
    try:
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return True


def stage(path: str, data: bytes, mode: int, group: int = 0) -> str:
    """A new file on disk beside the path, with these bytes, owned by root: it is to be renamed into its place."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=".cw-", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as new:
            new.write(data)
            new.flush()
            os.fchmod(new.fileno(), mode)
            os.fchown(new.fileno(), 0, group)
            os.fsync(new.fileno())
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


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


def prune(directory: str, first_line: str, wanted: set, check: bool = False) -> list:
    """Removes the files below that begin with the line and are not wanted, and the directories that are empty then. Their paths."""
    removed = []
    for folder, _folders, names in os.walk(directory, topdown=False):
        paths = [os.path.join(folder, name) for name in sorted(names)]
        here = [path for path in paths if path not in wanted and begins_with(path, first_line) and remove(path, check)]
        if here and not check and folder != directory and not os.listdir(folder):
            os.rmdir(folder)
        removed += here
    return removed


def begins_with(path: str, line: str) -> bool:
    """Whether the first line of a file is this one; it follows no link."""
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as source:
        return source.readline().rstrip(b"\n") == line.encode("utf-8")


def text(path: str) -> str | None:
    """What a text file holds; None where there is none."""
    try:
        with open(path, encoding="utf-8") as source:
            return source.read()
    except FileNotFoundError:
        return None


def read(path: str) -> str:
    """What a file of others holds, for `replace_foreign`: each byte stays, also those that are no text. Empty, if there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as source:
            return source.read()
    except FileNotFoundError:
        return ""


def replace_foreign(path: str, content: str) -> None:
    """Replaces a file of others whole: its owner, mode and labels stay. A mount point cannot be replaced, and is written into."""
    path = os.path.realpath(path)
    data = content.encode("utf-8", "surrogateescape")
    descriptor, temporary = tempfile.mkstemp(prefix=".cw-", dir=os.path.dirname(path))
    try:
        with os.fdopen(descriptor, "wb") as new:
            new.write(data)
            new.flush()
            resemble(new.fileno(), path)
            os.fsync(new.fileno())
        os.replace(temporary, path)
    except BaseException as problem:
        os.unlink(temporary)
        if not (isinstance(problem, OSError) and problem.errno == errno.EBUSY):
            raise
        with open(path, "r+b") as out:
            out.write(data)
            out.truncate()
            os.fsync(out.fileno())


def resemble(descriptor: int, path: str) -> None:
    """Gives the new file what the old one has beside its content."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        os.fchmod(descriptor, 0o644)
        return
    os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, status.st_mode & 0o7777)
    for name in os.listxattr(path):
        try:
            os.setxattr(descriptor, name, os.getxattr(path, name))
        except OSError:
            # A label that this file system keeps for itself.
            pass
