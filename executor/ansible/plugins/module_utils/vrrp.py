# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Listens for the announcements of those who hold a virtual address (RFC 5798). Read-only."""

from __future__ import annotations

import select
import socket
import time

PROTOCOL = 112


def announced(router_id: int, seconds: float) -> str:
    """The address of a machine that announces this router to us within the time, or nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, PROTOCOL) as listener:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([listener], [], [], left)[0]:
                break
            packet, sender = listener.recvfrom(256)
            # The header's length, then version and type, then the router's number.
            payload = packet[(packet[0] & 0x0F) * 4:]
            if len(payload) > 1 and payload[0] & 0x0F == 1 and payload[1] == router_id:
                return sender[0]
    return ""
