# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The artifact bundle over HTTP: its index, which entry is meant, and downloads verified before anyone uses them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from ansible_collections.clusterwright.cluster.plugins.module_utils import prefetched
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle_listing import Listing
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle_source import Source
from ansible_collections.clusterwright.cluster.plugins.module_utils.components import frozen_components, identity, known_as
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import architecture
from ansible_collections.clusterwright.cluster.plugins.module_utils.upstream import Upstream
from ansible_collections.clusterwright.cluster.plugins.module_utils.versions import Versions, rank, same

CACHE = "/var/cache/clusterwright"


class Bundle:
    """Where a run's artifacts come from, as the variable `artifacts_bundle` describes it: a bundle, or upstream's own servers."""

    def __init__(self, options: dict) -> None:
        source = Source(options)
        self._arch = architecture()
        frozen = frozen_components(options.get("components", {}))
        self._entries = Listing(source, self._arch) if source.url else Upstream(source, self._arch)
        self._versions = Versions(frozen, self._entries.components, str(options.get("kube_version", "")))
        self.artifacts = self._entries.artifacts

    def find(self, name: str, version: str | None) -> dict | None:
        """The artifact of that name and version; of no version, the newest. Of several, the one with the frozen digest."""
        return self._entries.find(name, version, self._versions.digest(name, version or "", self._arch))

    def check_reachable(self, artifacts: list) -> None:
        """Whether the servers of these answer. Of a bundle its index has."""
        if isinstance(self._entries, Upstream):
            self._entries.check_reachable(artifacts)

    def _check_named(self) -> None:
        """What the cluster's spec names must be there, for whichever machine: before one component is touched, all are known to be."""
        lacking = []
        for field, name, version in self._versions.named():
            there = self._entries.offered(name)
            if there is not None and not any(same(one, version) for one in there):
                offered = ", ".join(sorted(there, key=rank)) or "of no version"
                lacking.append(f"{field} is {version}, and {self._entries.place} has {name} {offered}")
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
            if artifact is None:
                by = f" ({meant.by})" if meant.by else ""
                missing.append(f"{name} {meant.version or self._entries.no_version}{by}")
                continue
            frozen = self._versions.digest(name, artifact["version"], self._arch)
            artifact = known_as(artifact, frozen)
            resolved.append(artifact)
            got = identity(artifact)
            if frozen and got != frozen:
                changed.append(
                    f"component {name} {artifact['version']} has sha256 {got}, and {frozen} is frozen for this cluster"
                )
        if missing:
            raise StepFailure(
                "ArtifactNotFound",
                f"{self._entries.place} has no {', '.join(missing)} for linux/{self._arch}: {self._entries.missing_remedy}",
            )
        if changed:
            raise StepFailure(
                "ComponentChanged",
                f"{self._entries.place}: {'; '.join(changed)}: {self._entries.changed_remedy}",
            )
        return resolved

    def fetch(self, artifact: dict) -> str:
        """Downloads the artifact into the cache, unless it was prefetched, and verifies it; returns the file's path."""
        found = prefetched.find(artifact)
        if found:
            return found
        os.makedirs(CACHE, mode=0o700, exist_ok=True)
        target = os.path.join(CACHE, f"{artifact['sha256'][:16]}-{os.path.basename(artifact['path'])}")
        try:
            self._entries.download(artifact, target)
        except BaseException:
            if os.path.exists(target):
                os.unlink(target)
            raise
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
