# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Certificates with their keys, put into their places together."""

from __future__ import annotations

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import files


def mode(entry: dict) -> int:
    return int(entry.get("mode") or "600", 8)


def differing(entries: list) -> list:
    """Those of {path, content, mode} that are not so on the machine."""
    return [entry for entry in entries if files.write(entry["path"], entry["content"], mode(entry), True)]


def write(entries: list, check: bool) -> list:
    """Writes them, and returns the paths that changed. All are on disk before the first is renamed into its place: whoever reads a
    certificate and its key at each handshake meets a pair that does not match for no longer than it takes to rename two files."""
    wanted = differing(entries)
    if check or not wanted:
        return [entry["path"] for entry in wanted]
    staged: list = []
    try:
        for entry in wanted:
            path = entry["path"]
            staged.append((files.stage(path, entry["content"].encode("utf-8"), mode(entry)), path))
        while staged:
            os.replace(*staged[0])
            staged.pop(0)
    finally:
        for temporary, _path in staged:
            files.remove(temporary)
    return [entry["path"] for entry in wanted]
