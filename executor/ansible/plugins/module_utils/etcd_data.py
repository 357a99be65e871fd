# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Whose data is in an etcd data directory, read from its log without starting etcd."""

from __future__ import annotations

import fcntl
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


def logs(member: str) -> list:
    """The files of the write-ahead log below `member`. Without one, etcd begins anew."""
    folder = os.path.join(member, "wal")
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".wal"))
    except OSError:
        return []


def identity(directory: str) -> tuple | None:
    """(ID of the cluster, ID of the member) of the data; None when there is none, (0, 0) when it cannot be read."""
    return identity_of(os.path.join(directory, "member"))


def identity_of(member: str) -> tuple | None:
    """Like identity, of data that was moved: its own directory, which etcd calls `member`."""
    files = logs(member)
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


def database(member: str) -> str:
    """The file of the database below `member`."""
    return os.path.join(member, "snap", "db")


def in_use(member: str) -> bool:
    """Whether a process has the database open: etcd locks it for as long as it runs."""
    try:
        descriptor = os.open(database(member), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def first_bytes(data: bytes) -> int:
    return int.from_bytes(hashlib.sha1(data, usedforsecurity=False).digest()[:8], "big")


def new_cluster(members: list, token: str) -> int:
    """The ID that etcd gives a cluster that begins with these members and this token."""
    ids = sorted(first_bytes((member["peer_url"] + token).encode()) for member in members)
    return first_bytes(b"".join(number.to_bytes(8, "big") for number in ids))


def wipe(directory: str) -> None:
    """Takes the member's data away; the directory itself may be a mount point."""
    shutil.rmtree(os.path.join(directory, "member"), ignore_errors=True)
