# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Digests of files of any size."""

from __future__ import annotations

import hashlib

PIECE = 1024 * 1024


def sha256(path: str) -> str:
    """SHA-256 of the file, hexadecimal."""
    total = hashlib.sha256()
    with open(path, "rb") as source:
        while piece := source.read(PIECE):
            total.update(piece)
    return total.hexdigest()
