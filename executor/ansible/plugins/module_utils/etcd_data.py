# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Whose data is in an etcd data directory, read from its log without starting etcd."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct

METADATA = 1
SIZE_MASK = (1 << 56) - 1


def varint(data: bytes, at: int) -> tuple:
    """(value, next position)."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7


def fields(data: bytes) -> dict:
    """The fields of a protobuf message by number: numbers, and bytes."""
    found: dict = {}
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            found[tag >> 3], at = varint(data, at)
        elif tag & 7 == 2:
            size, at = varint(data, at)
            found[tag >> 3] = data[at:at + size]
            at += size
        else:
            raise ValueError("not of the log")
    return found


def logs(directory: str) -> list:
    """The files of the write-ahead log. Without one, etcd begins anew."""
    folder = os.path.join(directory, "member", "wal")
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".wal"))
    except OSError:
        return []


def identity(directory: str) -> tuple | None:
    """(ID of the cluster, ID of the member) of the data; None when there is none, (0, 0) when it cannot be read."""
    files = logs(directory)
    if not files:
        return None
    try:
        with open(files[-1], "rb") as source:
            for _record in range(4):
                size = struct.unpack("<q", source.read(8))[0]
                padding = (size >> 56) & 7 if size < 0 else 0
                record = fields(source.read(size & SIZE_MASK))
                source.read(padding)
                if record.get(1) == METADATA:
                    metadata = fields(record.get(3, b""))
                    return metadata.get(2, 0), metadata.get(1, 0)
    except (OSError, ValueError, IndexError, struct.error):
        pass
    return 0, 0


def first_bytes(data: bytes) -> int:
    return int.from_bytes(hashlib.sha1(data, usedforsecurity=False).digest()[:8], "big")


def new_cluster(members: list, token: str) -> int:
    """The ID that etcd gives a cluster that begins with these members and this token."""
    ids = sorted(first_bytes((member["peer_url"] + token).encode()) for member in members)
    return first_bytes(b"".join(number.to_bytes(8, "big") for number in ids))


def wipe(directory: str) -> None:
    """Takes the member's data away; the directory itself may be a mount point."""
    shutil.rmtree(os.path.join(directory, "member"), ignore_errors=True)
