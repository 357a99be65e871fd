# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Health endpoints of what runs on this very machine."""

from __future__ import annotations

import http.client
import ssl

KUBELET = ("http", "127.0.0.1", 10248, "/healthz")
CONTROLLER_MANAGER = ("https", "127.0.0.1", 10257, "/healthz")
SCHEDULER = ("https", "127.0.0.1", 10259, "/livez")


def apiserver(address: str, port: int) -> tuple:
    return ("https", address, port, "/readyz")


def answer(endpoint: tuple, context: ssl.SSLContext | None = None, timeout: float = 5) -> tuple:
    """(well, what it said). Without a context the certificate is not checked: these are our own processes, asked only for their health."""
    scheme, address, port, path = endpoint
    try:
        if scheme == "https":
            if context is None:
                context = ssl._create_unverified_context()  # pylint: disable=protected-access
            connection = http.client.HTTPSConnection(address, port, timeout=timeout, context=context)
        else:
            connection = http.client.HTTPConnection(address, port, timeout=timeout)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            said = response.read(2000).decode("utf-8", "replace").strip()
            return response.status == 200, said or f"HTTP {response.status}"
        finally:
            connection.close()
    except (OSError, http.client.HTTPException) as error:
        return False, f"{address}:{port} {error}"
