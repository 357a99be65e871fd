# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The catalogue of upstream's releases, as the variable C(artifacts_catalogue) has it: where each program and image is, by templates
in which C({version}) is the version without a v, and C({arch}) the architecture; and the versions that go with each minor."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

FIELDS = {"kubernetes", "components", "versions"}
KINDS = {"file": {"kind", "url", "checksums"}, "archive": {"kind", "url", "checksums"}, "image": {"kind", "from"}}


class Catalogue:
    """`versions` is the version of each component by name, by Kubernetes minor."""

    def __init__(self, value: dict) -> None:
        if not isinstance(value, dict) or set(value) != FIELDS or not all(isinstance(value[field], dict) for field in FIELDS):
            raise invalid("artifacts_catalogue", f"an object with {', '.join(sorted(FIELDS))}, each an object")
        self._sources = {**value["components"], **value["kubernetes"]}
        for name, source in self._sources.items():
            check(f"artifacts_catalogue: {name}", source)
        self.versions = value["versions"]

    def find(self, name: str, version: str, arch: str) -> dict | None:
        """The artifact of that name and version, without its digest. `key` is what a lock calls it; an image has `image`, its reference,
        and all others have `url` and `checksums`. None: the catalogue does not know the name."""
        source = self._sources.get(name)
        if source is None:
            return None

        def fill(template: str) -> str:
            return template.replace("{version}", version.removeprefix("v")).replace("{arch}", arch)

        entry = {"name": name, "kind": source["kind"], "version": version, "os": "linux", "arch": arch}
        if source["kind"] == "image":
            image = fill(source["from"])
            written = self._written(name, version)
            return {**entry, "version": written, "image": image, "key": f"{image} linux/{arch}", "path": f"{name.replace('/', '-')}.tar"}
        url = fill(source["url"])
        return {**entry, "url": url, "checksums": fill(source["checksums"]), "key": url, "path": url.rpartition("/")[2]}

    def _written(self, name: str, version: str) -> str:
        """An image's tag: with a v where the catalogue writes its versions so, whoever asks."""
        with_v = any(table.get(name, "").startswith("v") for table in self.versions.values())
        return f"v{version}" if with_v and not version.startswith("v") else version


def check(place: str, source: object) -> None:
    fields = KINDS.get(source.get("kind")) if isinstance(source, dict) else None
    if fields is None or set(source) != fields or not all(isinstance(text, str) for text in source.values()):
        allowed = "kind file or archive with url and checksums, or kind image with from"
        raise invalid(place, allowed)
    for field in fields - {"kind", "from"}:
        # Nothing but TLS tells that a checksum is upstream's.
        if not source[field].startswith("https://"):
            raise invalid(f"{place}.{field}", "an https URL")


def invalid(place: str, allowed: str) -> StepFailure:
    return StepFailure("InvalidVariables", f"{place} must be {allowed}: correct the variable artifacts_catalogue")
