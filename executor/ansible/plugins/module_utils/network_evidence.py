# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What this machine itself sees of the cluster's network: other nodes, by the program that probes them anyway, and the cluster's DNS."""

from __future__ import annotations

import errno
import importlib.machinery
import importlib.util
import os
import socket
import struct
import sys

PROGRAM = "/usr/local/sbin/clusterwright-network-probe"
SECONDS = 2
ATTEMPTS = 2
REFUSALS = {1: "the question is malformed", 2: "it failed (SERVFAIL)", 3: "there is no such name (NXDOMAIN)", 5: "it refuses (REFUSED)"}


def probe_program():
    """The program of the probe as a module; None where it is not installed."""
    loader = importlib.machinery.SourceFileLoader("clusterwright_network_probe", PROGRAM)
    program = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    # Nothing is left beside the program.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(program)
    except OSError:
        return None
    finally:
        sys.dont_write_bytecode = before
    return program


def ask_peers(node: dict) -> dict:
    """By name what kept each node from answering this machine, of those that it is given in the annotation of its own Node; empty where
    one answered. None at all where there is nobody to ask."""
    program = probe_program()
    if program is None:
        return {}
    probe = program.Probe()
    probe.learn(node)
    if probe.targets is None:
        return {}
    errors = program.ask_peers(probe.targets.peers, probe.targets.source, SECONDS)
    return {peer.node: error for peer, error in errors.items()}


def ask_dns(address: str, name: str) -> tuple:
    """(whether it answered, what is wrong with the answer or kept it from coming; empty when the name resolves)."""
    number = os.urandom(2)
    labels = b"".join(bytes((len(label),)) + label.encode("ascii") for label in name.rstrip(".").split("."))
    question = number + struct.pack(">5H", 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)
    said = "timed out"
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.settimeout(SECONDS)
        for _attempt in range(ATTEMPTS):
            try:
                connection.connect((address, 53))
                connection.send(question)
                answer = connection.recv(4096)
            except OSError as error:
                said = os.strerror(error.errno).lower() if error.errno not in (None, errno.ETIMEDOUT) else "timed out"
                continue
            if answer[:2] == number and len(answer) > 3:
                code = answer[3] & 15
                return True, REFUSALS.get(code, f"it failed with code {code}") if code else ""
    return False, said
