# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The kernel's IP sets, over netlink: Calico and kube-proxy bring their own ipset program in an image, and the machine need not have one."""

from __future__ import annotations

import os
import socket
import struct

NETFILTER = 12
SUBSYSTEM = 6 << 8
DESTROY, LIST = 3, 7
PROTOCOL, NAME, FLAGS = 1, 2, 6 | 0x4000
# Of a list: without the sets' entries.
NAMES_ONLY = struct.pack(">I", 2)
REQUEST, ACK, DUMP = 1, 4, 0x300
ERROR, DONE = 2, 3
VERSION = 6


def attribute(kind: int, value: bytes) -> bytes:
    size = 4 + len(value)
    return struct.pack("=HH", size, kind) + value + b"\0" * (-size % 4)


def attributes(data: bytes) -> dict:
    found = {}
    while len(data) >= 4:
        size, kind = struct.unpack_from("=HH", data)
        if size < 4:
            break
        found[kind & 0x3FFF] = data[4:size]
        data = data[size + (-size % 4):]
    return found


def ask(command: int, flags: int, body: bytes) -> list:
    """The attributes of each answer; OSError where the kernel refuses."""
    answers = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER) as link:
        link.settimeout(10)
        link.bind((0, 0))
        payload = struct.pack("=BBH", socket.AF_INET, 0, 0) + attribute(PROTOCOL, bytes([VERSION])) + body
        link.send(struct.pack("=IHHII", 16 + len(payload), SUBSYSTEM | command, flags, 1, 0) + payload)
        while True:
            data = link.recv(1 << 20)
            while len(data) >= 16:
                size, kind = struct.unpack_from("=IH", data)
                if kind == ERROR:
                    code = -struct.unpack_from("=i", data, 16)[0]
                    if code:
                        raise OSError(code, os.strerror(code))
                    return answers
                if kind == DONE:
                    return answers
                answers.append(attributes(data[20:size]))
                data = data[size + (-size % 4):]


def names() -> list:
    """Names of all sets; none where the kernel has no sets."""
    try:
        answers = ask(LIST, REQUEST | ACK | DUMP, attribute(FLAGS, NAMES_ONLY))
    except OSError:
        return []
    return sorted({found[NAME].rstrip(b"\0").decode("ascii", "replace") for found in answers if NAME in found})


def destroy(name: str) -> None:
    """Removes a set; OSError while a rule or another set refers to it."""
    ask(DESTROY, REQUEST | ACK, attribute(NAME, name.encode("ascii") + b"\0"))
