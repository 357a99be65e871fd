# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Asks the machine's network who has an address. Read-only: nobody remembers anything of the questions, which carry no sender."""

from __future__ import annotations

import ipaddress
import select
import socket
import struct
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

ARP = 0x0806
REQUEST, REPLY = 1, 2


def question(mac: bytes, target: str) -> bytes:
    """An ARP probe in an Ethernet frame (RFC 5227): the sender's address is 0.0.0.0, so no cache takes it up."""
    ethernet = b"\xff" * 6 + mac + struct.pack("!H", ARP)
    body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, REQUEST) + mac + bytes(4) + bytes(6) + socket.inet_aton(target)
    return ethernet + body


def who_has(interface: str, targets: list, seconds: float = 0.15) -> dict:
    """MAC addresses that answered, by the address asked for."""
    mac = bytes.fromhex(text(f"/sys/class/net/{interface}/address").replace(":", ""))
    found: dict = {}
    if len(mac) != 6:
        return found
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ARP)) as link:
        link.bind((interface, ARP))
        for target in targets:
            link.send(question(mac, target))
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([link], [], [], left)[0]:
                break
            frame = link.recv(128)
            if len(frame) < 42 or struct.unpack("!H", frame[20:22])[0] != REPLY:
                continue
            address = socket.inet_ntoa(frame[28:32])
            if address in targets and frame[22:28] != mac:
                found.setdefault(address, set()).add(frame[22:28].hex(":"))
    return found


def names(interface: str, macs: set, hosts: dict) -> str:
    """Whose the MAC addresses are: Hosts by their own addresses, with the MAC address; the MAC address alone of a stranger."""
    known: dict = {}
    for address, answers in who_has(interface, list(hosts), 0.5).items():
        for mac in answers:
            known.setdefault(mac, set()).add(hosts[address])
    return " and ".join(f"Host {', '.join(sorted(known[mac]))} ({mac})" if mac in known else mac for mac in sorted(macs))


def gateways(pods: str, count: int = 16) -> list:
    """The first address of each of the first node ranges: a node's bridge has it, once it runs Pods."""
    network = ipaddress.ip_network(pods)
    prefix = max(24, network.prefixlen)
    subnets = network.subnets(new_prefix=prefix)
    return [str(subnet.network_address + 1) for subnet, _number in zip(subnets, range(count))]
