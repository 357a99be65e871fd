# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Who listens on a TCP port of this machine, by the kernel's tables."""

from __future__ import annotations

import ipaddress

from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

LISTENS = "0A"


def address_of(digits: str) -> str:
    """The address, which the tables have as words of 32 bits in the machine's order: little-endian on all that we support."""
    words = [bytes.fromhex(digits[at:at + 8])[::-1] for at in range(0, len(digits), 8)]
    address = ipaddress.ip_address(b"".join(words))
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def addresses(port: int) -> list:
    """The local addresses on which somebody listens on the port; 0.0.0.0 and :: are all."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in text(f"/proc/net/{table}").splitlines()[1:]:
            fields = line.split()
            if len(fields) > 3 and fields[3] == LISTENS:
                digits, _colon, number = fields[1].rpartition(":")
                if int(number, 16) == port:
                    found.add(address_of(digits))
    return sorted(found)
