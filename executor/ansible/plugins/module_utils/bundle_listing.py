# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What an artifact bundle has: its index, read over HTTP once in a run."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils import bundle_cache, bundle_index
from ansible_collections.clusterwright.cluster.plugins.module_utils.downloads import fetch_file, retried
from ansible_collections.clusterwright.cluster.plugins.module_utils.versions import rank, same


class Listing:
    """The entries of a bundle's index. It is one of the two places that a Bundle takes artifacts from; the other is Upstream."""

    no_version = "(any version)"
    missing_remedy = "add it to the bundle (of what is frozen, the file that it was), or ask for a version that is there"
    changed_remedy = (
        "put the former file back in the bundle; a file that was built anew is another component, and needs a version of its own"
    )

    def __init__(self, source, arch: str) -> None:
        self._source = source
        self._arch = arch
        index = self._index()
        self.components = index.components
        self.place = f"{source.url}/index.json"
        self._all = index.artifacts
        self.artifacts = [
            entry
            for entry in index.artifacts
            if entry.get("os", "linux") == "linux" and entry.get("arch", self._arch) == self._arch
        ]

    def _index(self) -> bundle_index.Index:
        url = f"{self._source.url}/index.json"
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

    def find(self, name: str, version: str | None, frozen: str) -> dict | None:
        """The artifact of that name and version; of no version, the newest. Of several, the one with the frozen digest."""
        found = [entry for entry in self.artifacts if entry["name"] == name]
        if version:
            found = [entry for entry in found if same(entry["version"], version)]
        return max(found, key=lambda entry: (rank(entry["version"]), entry["sha256"].lower() == frozen), default=None)

    def offered(self, name: str) -> set:
        """The versions that are there, for whichever machine."""
        return {entry["version"] for entry in self._all if entry["name"] == name}

    def download(self, artifact: dict, target: str) -> None:
        """Writes the artifact's file, verified."""
        url = f"{self._source.url}/{artifact['path']}"
        fetch_file(self._source, url, target, artifact, "repair the bundle or its index")
