# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Moves a file or a directory so that it is in one of the two places at any time, also after a power failure."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile


def sync(directory: str) -> None:
    """Makes the names in the directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename(source: str, target: str) -> None:
    """Renames within a file system."""
    os.rename(source, target)
    for folder in sorted({os.path.dirname(source), os.path.dirname(target)}):
        sync(folder)


def file(source: str, target: str) -> None:
    """Moves a file, also to another file system: there it is complete before it is seen, and goes here last."""
    try:
        rename(source, target)
    except OSError as problem:
        if problem.errno != errno.EXDEV:
            raise
        copy(source, target)
        os.unlink(source)
        sync(os.path.dirname(source))


def copy(source: str, target: str) -> None:
    # A hidden name: the kubelet reads every other file of its directory.
    descriptor, temporary = tempfile.mkstemp(prefix=".cw-", dir=os.path.dirname(target))
    try:
        with os.fdopen(descriptor, "wb") as new, open(source, "rb") as old:
            shutil.copyfileobj(old, new)
            new.flush()
            status = os.fstat(old.fileno())
            os.fchown(new.fileno(), status.st_uid, status.st_gid)
            os.fchmod(new.fileno(), status.st_mode & 0o7777)
            os.fsync(new.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    sync(os.path.dirname(target))
