# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The artifact bundle over HTTP: its index, which entry is meant, and downloads verified before anyone uses them."""

from __future__ import annotations

import hashlib
import http.client
import os
import ssl
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor

from ansible_collections.clusterwright.cluster.plugins.module_utils import bundle_cache, bundle_index, prefetched
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle_source import Source
from ansible_collections.clusterwright.cluster.plugins.module_utils.components import frozen_components
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import architecture
from ansible_collections.clusterwright.cluster.plugins.module_utils.versions import Versions, rank, same

CACHE = "/var/cache/clusterwright"
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
    """One bundle, as the variable `artifacts_bundle` describes it; its index is read once in a run."""

    def __init__(self, options: dict) -> None:
        self._source = Source(options)
        self.url = self._source.url
        self._arch = architecture()
        frozen = frozen_components(options.get("components", {}))
        index = self._index()
        self._versions = Versions(frozen, index.components, str(options.get("kube_version", "")))
        self._all = index.artifacts
        self.artifacts = [
            entry
            for entry in index.artifacts
            if entry.get("os", "linux") == "linux" and entry.get("arch", self._arch) == self._arch
        ]

    def _index(self) -> bundle_index.Index:
        url = f"{self.url}/index.json"
        kept = bundle_cache.read(url)
        if kept is not None and self._source.is_promised(kept):
            return bundle_index.parse(kept, url)

        def fetch():
            with self._source.open(url) as answer:
                return answer.read()

        content = retried(fetch, url)
        self._source.check_index(content)
        index = bundle_index.parse(content, url)
        bundle_cache.keep(url, content)
        return index

    def find(self, name: str, version: str | None) -> dict | None:
        """The artifact of that name and version; of no version, the newest. Of several, the one with the frozen digest."""
        found = [entry for entry in self.artifacts if entry["name"] == name]
        if version:
            found = [entry for entry in found if same(entry["version"], version)]
        frozen = self._versions.digest(name, version or "", self._arch)
        return max(found, key=lambda entry: (rank(entry["version"]), entry["sha256"].lower() == frozen), default=None)

    def _check_named(self) -> None:
        """What the cluster's spec names must be there, for whichever machine: before one component is touched, all are known to be."""
        lacking = []
        for field, name, version in self._versions.named():
            there = {entry["version"] for entry in self._all if entry["name"] == name}
            if not any(same(one, version) for one in there):
                offered = ", ".join(sorted(there, key=rank)) or "of no version"
                lacking.append(f"{field} is {version}, and {self.url}/index.json has {name} {offered}")
        if lacking:
            raise StepFailure(
                "ArtifactNotFound",
                f"{'; '.join(lacking)}: name a version that is there, or add it to the bundle; nothing was changed",
            )

    def resolve(self, wanted: list) -> list:
        """The artifact of each {name, version}; names every one that is missing, or another file than the frozen one."""
        self._check_named()
        resolved, missing, changed = [], [], []
        for entry in wanted:
            name = entry["name"]
            meant = self._versions.meant(name, entry.get("version"))
            artifact = self.find(name, meant.version)
            resolved.append(artifact)
            if artifact is None:
                by = f" ({meant.by})" if meant.by else ""
                missing.append(f"{name} {meant.version or '(any version)'}{by}")
                continue
            frozen = self._versions.digest(name, artifact["version"], self._arch)
            if frozen and artifact["sha256"].lower() != frozen:
                got = artifact["sha256"].lower()
                changed.append(
                    f"component {name} {artifact['version']} has sha256 {got}, and {frozen} is frozen for this cluster"
                )
        if missing:
            raise StepFailure(
                "ArtifactNotFound",
                f"{self.url}/index.json has no {', '.join(missing)} for linux/{self._arch}: add it to the bundle (of what is"
                " frozen, the file that it was), or ask for a version that is there",
            )
        if changed:
            raise StepFailure(
                "ComponentChanged",
                f"{self.url}/index.json: {'; '.join(changed)}: put the former file back in the bundle; a file that was"
                " built anew is another component, and needs a version of its own",
            )
        return resolved

    def fetch(self, artifact: dict) -> str:
        """Downloads the artifact into the cache, unless it was prefetched, and verifies it; returns the file's path."""
        found = prefetched.find(artifact)
        if found:
            return found
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
            done = False
            try:
                result = then(artifact, path) if then else None
                done = True
                return result
            finally:
                # What was prefetched is there for another attempt as well.
                if os.path.exists(path) and (done or not prefetched.is_kept(path)):
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
