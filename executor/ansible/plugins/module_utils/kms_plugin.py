# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""A KMS plug-in, asked for its status as an API server asks it: gRPC by HTTP/2 on its socket, of Kubernetes' KMS API v2."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

SCHEME = "unix://"
METHOD = "/v2.KeyManagementService/Status"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, ACK, END_HEADERS, PADDED = 0x1, 0x1, 0x4, 0x8
STREAM = 1
# Nobody says more in a status.
LIMIT = 1 << 16
VERSIONS = ("v2", "v2beta1")


class Broken(Exception):
    """It does not answer as a plug-in does."""


def text(content: bytes) -> bytes:
    """A string of HPACK as it is: nothing here has more than 126 bytes."""
    return bytes([len(content)]) + content


def headers() -> bytes:
    """Each a literal that is not indexed."""
    fields = {
        ":method": "POST", ":scheme": "http", ":path": METHOD, ":authority": "localhost", "content-type": "application/grpc", "te": "trailers",
    }  # fmt: skip
    return b"".join(b"\0" + text(name.encode()) + text(value.encode()) for name, value in fields.items())


def frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    return struct.pack(">I", len(content))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + content


def varint(content: bytes, at: int) -> tuple:
    """(number, where it ends)."""
    number = shift = 0
    while True:
        if at >= len(content) or shift > 63:
            raise Broken("its answer is cut off")
        number |= (content[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not content[at - 1] & 0x80:
            return number, at


def fields(content: bytes) -> Iterator[tuple]:
    """(number, bytes) of each field of a protobuf message that has bytes."""
    at = 0
    while at < len(content):
        tag, at = varint(content, at)
        if tag & 7 == 2:
            size, at = varint(content, at)
            if at + size > len(content):
                raise Broken("its answer is cut off")
            yield tag >> 3, content[at:at + size]
            at += size
        elif tag & 7 == 0:
            _number, at = varint(content, at)
        else:
            raise Broken("its answer is none of KMS API v2")


class Connection:
    """One question."""

    def __init__(self, path: str, deadline: float) -> None:
        self.deadline = deadline
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.patience()
        self.socket.connect(path)

    def patience(self) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise Broken("it does not answer in time")
        self.socket.settimeout(left)

    def read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            self.patience()
            more = self.socket.recv(size - len(found))
            if not more:
                raise Broken("it closes the connection without an answer")
            found += more
        return found

    def ask(self) -> bytes:
        """What it answers, of HTTP's data all."""
        question = b"\0" + struct.pack(">I", 0)
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, STREAM, headers()) + frame(DATA, END_STREAM, STREAM, question))
        answer = b""
        while len(answer) < LIMIT:
            head = self.read(9)
            size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
            content = self.read(size)
            if kind in (SETTINGS, PING) and not flags & ACK:
                self.socket.sendall(frame(kind, ACK, 0, content if kind == PING else b""))
            elif kind == DATA and stream == STREAM:
                answer += content[1:len(content) - content[0]] if flags & PADDED else content
            elif kind == GOAWAY or (kind == RST_STREAM and stream == STREAM):
                raise Broken("it refuses the question")
            if kind in (DATA, HEADERS) and stream == STREAM and flags & END_STREAM:
                return answer
        raise Broken("its answer is too long")


def status(endpoint: str, timeout_seconds: float) -> dict:
    """Its version, healthz and key_id. OSError and Broken: it does not answer so."""
    deadline = time.monotonic() + timeout_seconds
    try:
        connection = Connection(endpoint[len(SCHEME):], deadline)
        answer = connection.ask()
    except socket.timeout:
        raise Broken(f"it does not answer in {timeout_seconds} seconds") from None
    connection.socket.close()
    if len(answer) < 5 or answer[0] or int.from_bytes(answer[1:5], "big") != len(answer) - 5:
        raise Broken("it answers with an error: look at its log")
    found = {number: content.decode("utf-8", "replace") for number, content in fields(answer[5:])}
    return {"version": found.get(1, ""), "healthz": found.get(2, ""), "key_id": found.get(3, "")}


def complaint(endpoint: str, timeout_seconds: float) -> str:
    """Why an API server could not encrypt with it; empty: it could."""
    try:
        found = status(endpoint, timeout_seconds)
    except (OSError, Broken) as problem:
        return str(problem)
    if found["version"] not in VERSIONS:
        return f"it says that it is of version {found['version'][:40]!r} of the KMS API: one of {' and '.join(VERSIONS)} is needed"
    if found["healthz"] != "ok":
        return f"it says that it is not well: {found['healthz'][:200]}"
    return "" if found["key_id"] else "it names no key (key_id)"


def key_id(endpoint: str, timeout_seconds: float) -> str:
    """Of the key that it encrypts with now."""
    why = complaint(endpoint, timeout_seconds)
    if why:
        raise StepFailure("KMSPluginNotReady", f"the KMS plug-in at {endpoint} does not do: {why}")
    return status(endpoint, timeout_seconds)["key_id"]


def key_id_in(value: bytes) -> str:
    """Of the key with which it encrypted a value in etcd, behind its name."""
    try:
        return next((content.decode("utf-8", "replace") for number, content in fields(value) if number == 2), "")
    except Broken:
        return ""
