# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Certificates, read where they are: in a file, in a kubeconfig, or in the handshake of whoever serves one."""

from __future__ import annotations

import base64
import re
import socket
import ssl

from ansible_collections.clusterwright.cluster.plugins.module_utils.api import field, in_memory
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
# Who serves one answers at once, or is not there.
PATIENCE_SECONDS = 5


class Certificate:
    """One certificate; two are equal when they are the same one."""

    def __init__(self, pem: str, place: str) -> None:
        try:
            self.der = ssl.PEM_cert_to_DER_cert(pem)
            decoded = ssl._ssl._test_decode_cert(in_memory(pem.encode("ascii")))  # pylint: disable=protected-access
            self.expires = int(ssl.cert_time_to_seconds(decoded["notAfter"]))
        except (ValueError, KeyError, OSError) as error:
            raise unreadable(place, str(error)) from error
        names = [value for part in decoded.get("issuer", ()) for key, value in part if key == "commonName"]
        self.issuer = names[-1] if names else ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certificate) and self.der == other.der

    def __hash__(self) -> int:
        return hash(self.der)


def unreadable(place: str, why: str) -> StepFailure:
    return StepFailure(
        "CertificateUnreadable", f"there is no certificate that can be read in {place}: {why}: put it back from a backup, or make it anew"
    )


def all_in(text: str) -> list:
    """All that the text holds, in their order, each as it is between its first and its last line."""
    return ["".join(block.split()) for block in BLOCK.findall(text)]


def in_text(text: str, place: str) -> Certificate:
    """The first one in the text."""
    found = BLOCK.search(text)
    if not found:
        raise unreadable(place, "it has no PEM block CERTIFICATE")
    return Certificate(found.group(0), place)


def in_file(path: str) -> Certificate | None:
    """The first one in the file; none without the file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as source:
            return in_text(source.read(), path)
    except FileNotFoundError:
        return None


def in_kubeconfig(path: str) -> Certificate | None:
    """The client's in a kubeconfig with one user; none without the file, or where the kubeconfig has none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as source:
            text = source.read()
    except FileNotFoundError:
        return None
    if elsewhere := field(text, "client-certificate"):
        return in_file(elsewhere)
    data = field(text, "client-certificate-data")
    try:
        return in_text(base64.b64decode(data).decode("utf-8", "replace"), path) if data else None
    except ValueError as error:
        raise unreadable(path, str(error)) from error


def served(address: str, port: int, pair: tuple = ()) -> Certificate | None:
    """The one that is shown at the address; none where nobody answers. It is looked at, not believed. `pair`: files of the client's
    certificate and key, for who shows nothing without."""
    context = ssl._create_unverified_context()  # pylint: disable=protected-access
    try:
        if pair:
            context.load_cert_chain(*pair)
        with socket.create_connection((address, port), timeout=PATIENCE_SECONDS) as plain:
            with context.wrap_socket(plain) as connection:
                der = connection.getpeercert(binary_form=True)
    except OSError:
        return None
    return Certificate(ssl.DER_cert_to_PEM_cert(der), f"what {address}:{port} serves") if der else None
