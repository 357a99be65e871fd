# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Removes directories without ever leaving them: no link is followed, no other file system entered, no mount deleted below."""

from __future__ import annotations

import os
import stat

from ansible_collections.clusterwright.cluster.plugins.module_utils import mounts

# Deeper ones are moved up first: paths and open files have limits, and what a Pod made may be as deep as it liked.
DEPTH_LIMIT = 100
OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def mount_of(descriptor: int) -> str:
    """The mount that an open directory is in: other than its device, this tells a bind mount apart."""
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as source:
        for line in source:
            if line.startswith("mnt_id:"):
                return line.split()[1]
    return ""


class Emptying:
    """The work on one directory."""

    def __init__(self, top: int) -> None:
        self.top = top
        self.mount = mount_of(top)
        self.moved = 0

    def clear(self, directory: int, depth: int = 0) -> None:
        """Removes what can be removed in the directory."""
        for name in os.listdir(directory):
            try:
                self.drop(directory, name, depth)
            except OSError:
                # It stays, and whoever looks for leftovers finds it.
                continue

    def drop(self, directory: int, name: str, depth: int) -> None:
        if not stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=directory)
            return
        if depth >= DEPTH_LIMIT:
            self.moved += 1
            os.rename(name, f".clusterwright-{self.moved}", src_dir_fd=directory, dst_dir_fd=self.top)
            return
        inner = os.open(name, OPEN, dir_fd=directory)
        try:
            if mount_of(inner) != self.mount:
                return
            self.clear(inner, depth + 1)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=directory)

    def run(self) -> None:
        """Again for as long as something was moved up."""
        before = -1
        while before != self.moved:
            before = self.moved
            self.clear(self.top)


def empty(directory: str, keep: bool = False) -> bool:
    """Empties the directory and removes it, unless it is a mount point or to be kept. Touches nothing while anything is mounted below.
    The path must be a real one. True when nothing is left in it."""
    if mounts.below(directory):
        return False
    try:
        top = os.open(directory, OPEN)
    except OSError:
        return not os.path.lexists(directory)
    try:
        Emptying(top).run()
        left = os.listdir(top)
    finally:
        os.close(top)
    if not left and not keep:
        try:
            os.rmdir(directory)
        except OSError:
            pass
    return not left


def remove(path: str) -> None:
    """Removes a file, a link or a directory with all in it."""
    if os.path.isdir(path) and not os.path.islink(path):
        empty(os.path.realpath(path))
    elif os.path.lexists(path):
        os.unlink(path)
