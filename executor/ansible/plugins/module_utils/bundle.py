# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The artifact bundle over HTTP: its index, which entry is meant, and downloads verified before anyone uses them."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import ssl
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor

from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle_source import Source
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import architecture

CACHE = "/var/cache/clusterwright"
FORMAT = 1
ATTEMPTS = 3
CHUNK = 1 << 20
RETRIABLE = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)


def rank(version: str) -> tuple:
    """Orders versions: numbers by value, and a release after its own pre-releases."""
    core, _dash, pre = version.lstrip("v").partition("-")
    numbers = tuple(int(part) for part in re.findall(r"\d+", core))
    return numbers, not pre, pre


def explain(error: BaseException) -> str:
    if not isinstance(error, urllib.error.HTTPError):
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({reason.verify_message}): give its CA in spec.artifacts.caRef"
        return str(reason)
    if error.code in (401, 403):
        return f"HTTP {error.code}: the server refuses the login: correct the Secret of spec.artifacts.credentialsRef"
    return f"HTTP {error.code} {error.reason}" if 300 <= error.code < 400 else f"HTTP {error.code}"


def retried(action, url: str):
    """Calls the action again when the network failed; an answer that says no is final."""
    for number in range(1, ATTEMPTS + 1):
        try:
            return action()
        except urllib.error.HTTPError as error:
            final = error.code < 500
            if final or number == ATTEMPTS:
                raise StepFailure("ArtifactSourceUnavailable", f"{url}: {explain(error)}") from error
        except RETRIABLE as error:
            if number == ATTEMPTS:
                raise StepFailure(
                    "ArtifactSourceUnavailable", f"{url} does not answer from this machine: {explain(error)}"
                ) from error
        time.sleep(number)
    raise AssertionError("unreachable")


class Bundle:
    """One bundle, its index read once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.url = source.url
        index_url = f"{self.url}/index.json"

        def fetch():
            with source.open(index_url) as answer:
                return answer.read()

        content = retried(fetch, index_url)
        source.check_index(content)
        try:
            index = json.loads(content)
        except ValueError as error:
            raise StepFailure("ArtifactIndexInvalid", f"{index_url} is not JSON: {error}") from error
        if not isinstance(index, dict) or index.get("formatVersion") != FORMAT:
            raise StepFailure("ArtifactIndexInvalid", f"{index_url}: formatVersion must be {FORMAT}")
        arch = architecture()
        self.artifacts = [
            entry
            for entry in index.get("artifacts", [])
            if entry.get("os", "linux") == "linux" and entry.get("arch", arch) == arch
        ]

    def find(self, name: str, version: str | None) -> dict | None:
        """The artifact of that name and version; of no version, the newest."""
        found = [entry for entry in self.artifacts if entry["name"] == name]
        if version:
            found = [entry for entry in found if entry["version"].lstrip("v") == version.lstrip("v")]
        return max(found, key=lambda entry: rank(entry["version"]), default=None)

    def resolve(self, wanted: list) -> list:
        """The artifact of each {name, version}; names every one that is missing."""
        resolved, missing = [], []
        for entry in wanted:
            artifact = self.find(entry["name"], entry.get("version"))
            if artifact is None:
                missing.append(f"{entry['name']} {entry.get('version') or '(any version)'}")
            resolved.append(artifact)
        if missing:
            raise StepFailure(
                "ArtifactNotFound",
                f"{self.url}/index.json has no {', '.join(missing)} for linux/{architecture()}:"
                " add it to the bundle or ask for a version that is there",
            )
        return resolved

    def fetch(self, artifact: dict) -> str:
        """Downloads the artifact into the cache and verifies it; returns the file's path."""
        url = f"{self.url}/{artifact['path']}"
        os.makedirs(CACHE, mode=0o700, exist_ok=True)
        target = os.path.join(CACHE, f"{artifact['sha256'][:16]}-{os.path.basename(artifact['path'])}")

        def download():
            digest = hashlib.sha256()
            size = 0
            with self._source.open(url) as answer, open(target, "wb") as out:
                while chunk := answer.read(CHUNK):
                    digest.update(chunk)
                    out.write(chunk)
                    size += len(chunk)
            announced = answer.headers.get("Content-Length")
            if announced and int(announced) != size:
                raise ConnectionError(f"ended after {size} of {announced} bytes")
            return digest.hexdigest()

        got = retried(download, url)
        expected = artifact["sha256"].lower()
        if got != expected:
            os.unlink(target)
            raise StepFailure(
                "DigestMismatch",
                f"artifact {artifact['name']} {artifact['version']}: expected sha256 {expected}, got {got} from {url};"
                " nothing of it was used: repair the bundle or its index",
            )
        return target

    def fetch_all(self, artifacts: list, then=None) -> list:
        """Downloads side by side and calls `then(artifact, path)` on each as it comes; the file is gone afterwards."""

        def one(artifact):
            path = self.fetch(artifact)
            try:
                return then(artifact, path) if then else None
            finally:
                if os.path.exists(path):
                    os.unlink(path)

        if not artifacts:
            return []
        try:
            with ThreadPoolExecutor(max_workers=min(4, len(artifacts))) as pool:
                return list(pool.map(one, artifacts))
        finally:
            try:
                os.rmdir(CACHE)
            except OSError:
                pass
