# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Downloads over HTTP: again where the network failed, with what to do in the message where it keeps failing."""

from __future__ import annotations

import hashlib
import http.client
import os
import ssl
import time
import urllib.error

from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

ATTEMPTS = 3
CHUNK = 1 << 20
RETRIABLE = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)


def explain(error: BaseException) -> str:
    if not isinstance(error, urllib.error.HTTPError):
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({reason.verify_message}): give its CA in spec.artifacts.caRef"
        return str(reason)
    if error.code in (401, 403):
        return f"HTTP {error.code}: the server refuses the login: correct the Secret of spec.artifacts.credentialsRef"
    if error.code == 429:
        return "HTTP 429: the server answers no more requests from this address for now"
    return f"HTTP {error.code} {error.reason}" if 300 <= error.code < 400 else f"HTTP {error.code}"


def retried(action, url: str, explained=explain):
    """Calls the action again when the network failed; an answer that says no is final."""
    for number in range(1, ATTEMPTS + 1):
        try:
            return action()
        except urllib.error.HTTPError as error:
            final = error.code < 500
            if final or number == ATTEMPTS:
                raise StepFailure("ArtifactSourceUnavailable", f"{url}: {explained(error)}") from error
        except RETRIABLE as error:
            if number == ATTEMPTS:
                raise StepFailure(
                    "ArtifactSourceUnavailable", f"{url} does not answer from this machine: {explained(error)}"
                ) from error
        time.sleep(number)
    raise AssertionError("unreachable")


def copy(answer, out, limit: int | None = None) -> tuple:
    """Writes what is answered; SHA-256 and size of it. ConnectionError where less came than was announced, or more than `limit`."""
    digest, size = hashlib.sha256(), 0
    while chunk := answer.read(CHUNK):
        size += len(chunk)
        if limit is not None and size > limit:
            raise ConnectionError(f"more than {limit} bytes came")
        digest.update(chunk)
        out.write(chunk)
    announced = answer.headers.get("Content-Length")
    if announced and int(announced) != size:
        raise ConnectionError(f"ended after {size} of {announced} bytes")
    return digest.hexdigest(), size


def fetch_file(source, url: str, target: str, artifact: dict, remedy: str, explained=explain) -> None:
    """Downloads the artifact's file. Nothing of one with another digest is left: DigestMismatch."""

    def download():
        with source.open(url) as answer, open(target, "wb") as out:
            return copy(answer, out)[0]

    got = retried(download, url, explained)
    expected = artifact["sha256"].lower()
    if got != expected:
        os.unlink(target)
        raise StepFailure(
            "DigestMismatch",
            f"artifact {artifact['name']} {artifact['version']}: expected sha256 {expected}, got {got} from {url};"
            f" nothing of it was used: {remedy}",
        )
