# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Upstream's own servers in place of a bundle: what the catalogue has there, and by which digest each of it is known.

A digest is that of the lock, where there is one, and then nothing else is taken. Without a lock it is the cluster's own, once a
machine has reported it; until then what upstream publishes beside the file, or, of an image, what its registry answers for the tag."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse

from ansible_collections.clusterwright.cluster.plugins.module_utils import bundle_cache, checksums, image_archive
from ansible_collections.clusterwright.cluster.plugins.module_utils import registry as registries
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle_index import SHA256
from ansible_collections.clusterwright.cluster.plugins.module_utils.catalogue import Catalogue
from ansible_collections.clusterwright.cluster.plugins.module_utils.downloads import explain, fetch_file, retried
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

KEPT = "upstream"
TEXT_LIMIT = 1 << 20
LOCK = "the lock of spec.artifacts.lockRef"


def explained(error: BaseException) -> str:
    """As of a bundle; but nobody logs in here."""
    if isinstance(error, urllib.error.HTTPError) and error.code in (401, 403):
        return f"HTTP {error.code}: the server refuses access"
    return explain(error)


class Upstream:
    """The place of a Bundle's artifacts where the cluster has none: each is looked for by name and version."""

    place = "upstream"
    missing_remedy = "ask for a version that is released, or give a bundle that has it in spec.artifacts.url"
    changed_remedy = (
        "upstream, or somebody on the way, has another file than the one that the cluster has; where the cluster was installed from a"
        " bundle, give its spec.artifacts.url again"
    )

    def __init__(self, source, arch: str) -> None:
        self._source = source
        self._arch = arch
        self._registry = registries.Registry(source)
        self._catalogue = Catalogue(source.catalogue)
        self._kept = self._read_kept()
        self._texts: dict = {}
        self._asked: set = set()
        self.components = self._catalogue.versions
        self.no_version = f"(the catalogue has versions for Kubernetes {', '.join(sorted(self.components))} alone)"
        # What network plugins given as manifests need comes to their Nodes from their registries.
        self.artifacts: list = []

    def find(self, name: str, version: str | None, frozen: str) -> dict | None:
        """The artifact of that name and version; None: upstream has none. Of no version there is none either."""
        entry = self._catalogue.find(name, version, self._arch) if version else None
        if entry is None:
            return None
        digest = self._locked(entry) or frozen or self._kept.get(entry["key"]) or self._published(entry)
        if not digest:
            return None
        if not self._source.lock and not frozen:
            self._keep(entry["key"], digest)
        return {**entry, "sha256": digest}

    def offered(self, _name: str) -> None:
        """Which versions there are, nobody says."""

    def _locked(self, entry: dict) -> str:
        """The lock's digest; empty without a lock."""
        lock = self._source.lock
        if not lock:
            return ""
        digest = lock.get("images" if "image" in entry else "files", {}).get(entry["key"], "").removeprefix("sha256:")
        if not SHA256.fullmatch(digest):
            raise StepFailure(
                "ArtifactNotFound",
                f"{LOCK} has no digest of {entry['key']} ({entry['name']} {entry['version']}), and nothing else is taken: make the lock"
                " anew with wright bundle lock, for this version of Kubernetes and its components, and linux/" + self._arch,
            )
        return digest.lower()

    def _published(self, entry: dict) -> str:
        """What upstream says of the digest; empty where it has no such version."""
        try:
            return self._of_tag(entry) if "image" in entry else self._of_checksums(entry)
        except StepFailure as failure:
            cause = failure.__cause__
            if isinstance(cause, urllib.error.HTTPError) and cause.code == 404:
                return ""
            raise

    def _of_checksums(self, entry: dict) -> str:
        url = entry["checksums"]
        if url not in self._texts:
            self._asked.add(host(url))

            def read() -> str:
                with self._source.open(url) as answer:
                    return answer.read(TEXT_LIMIT).decode("utf-8", "replace")

            self._texts[url] = retried(read, url, explained)
        return checksums.find(self._texts[url], entry["url"].rpartition("/")[2], url)

    def _of_tag(self, entry: dict) -> str:
        reference = registries.parse(entry["image"])
        self._asked.add(reference.host)
        manifest, digest = self._manifest(reference, reference.tag)
        return (registries.of_machine(manifest, reference, self._arch) or digest).removeprefix("sha256:")

    def _manifest(self, reference, what: str) -> tuple:
        url = reference.url("manifests", what)
        return retried(lambda: self._registry.manifest(reference, what), url, explained)

    def check_reachable(self, artifacts: list) -> None:
        """Asks each server of these once that was not asked yet: what is known by its digest is looked for nowhere."""
        for artifact in artifacts:
            image = registries.parse(artifact["image"]) if "image" in artifact else None
            server = image.host if image else host(artifact["url"])
            if server in self._asked:
                continue
            self._asked.add(server)
            if image:
                self._manifest(image, f"sha256:{artifact['sha256']}")
            else:
                retried(lambda url=artifact["checksums"]: self._source.open(url).close(), artifact["checksums"], explained)

    def download(self, artifact: dict, target: str) -> None:
        """Writes the artifact's file, verified; of an image its archive."""
        if "image" not in artifact:
            fetch_file(self._source, artifact["url"], target, artifact, self.changed_remedy, explained)
            return
        reference = registries.parse(artifact["image"])
        manifest, _digest = self._manifest(reference, f"sha256:{artifact['sha256']}")
        image_archive.write(self._registry, artifact, manifest, target, explained)

    def _read_kept(self) -> dict:
        """What this run has found before: all its steps take the same."""
        kept = bundle_cache.read(KEPT)
        try:
            value = json.loads(kept) if kept else {}
        except ValueError:
            value = {}
        return value if isinstance(value, dict) else {}

    def _keep(self, key: str, digest: str) -> None:
        if self._kept.get(key) != digest:
            self._kept[key] = digest
            bundle_cache.keep(KEPT, json.dumps(self._kept).encode("utf-8"))


def host(url: str) -> str:
    return urllib.parse.urlsplit(url).netloc
