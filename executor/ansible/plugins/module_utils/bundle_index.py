# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The bundle's index, checked once as a whole: whoever uses it meets no field that is missing or of another type."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

FORMAT = 1
REQUIRED = ("name", "version", "kind", "path", "sha256")
MINOR = re.compile(r"[0-9]+\.[0-9]+")
SHA256 = re.compile(r"[0-9a-fA-F]{64}")


class Index(NamedTuple):
    """`artifacts` as the index lists them, and `components`: the version of each by name, by Kubernetes minor."""

    artifacts: list
    components: dict


def parse(content: bytes, url: str) -> Index:
    """The index in these bytes. Raises ArtifactIndexInvalid with the place that is wrong."""
    try:
        value = json.loads(content)
    except ValueError as error:
        raise StepFailure("ArtifactIndexInvalid", f"{url} is not JSON: {error}") from error
    require(isinstance(value, dict), url, "the index", value, "an object")
    check_format(url, value.get("formatVersion"))
    artifacts, components = value.get("artifacts", []), value.get("components", {})
    require(isinstance(artifacts, list), url, "artifacts", artifacts, "a list")
    for number, entry in enumerate(artifacts):
        check_artifact(url, f"artifacts[{number}]", entry)
    require(isinstance(components, dict), url, "components", components, 'an object, such as {"1.35": {"etcd": "3.6.16"}}')
    for minor, versions in components.items():
        check_versions(url, minor, versions)
    return Index(artifacts, components)


def check_format(url: str, version: object) -> None:
    """Refuses a format that is not known here. An index has always had the field; one without it is something else."""
    if type(version) is int and version > FORMAT:
        raise StepFailure(
            "ArtifactIndexInvalid",
            f"{url}: formatVersion is {version}, and the newest that is read here is {FORMAT}: update Clusterwright, or make the"
            " bundle with the wright of the version that is installed",
        )
    require(type(version) is int and version == FORMAT, url, "formatVersion", version, str(FORMAT))


def require(fulfilled: bool, url: str, place: str, value: object, allowed: str) -> None:
    if not fulfilled:
        shown = json.dumps(value)[:100]
        message = f"{url}: {place} is {shown}, and must be {allowed}: correct the index where the bundle is made"
        raise StepFailure("ArtifactIndexInvalid", message)


def check_artifact(url: str, place: str, entry: object) -> None:
    require(isinstance(entry, dict), url, place, entry, "an object")
    for key in REQUIRED:
        value = entry.get(key)
        require(isinstance(value, str) and bool(value), url, f"{place}.{key}", value, "text")
    require(bool(SHA256.fullmatch(entry["sha256"])), url, f"{place}.sha256", entry["sha256"], "64 hexadecimal digits")


def check_versions(url: str, minor: str, versions: object) -> None:
    require(bool(MINOR.fullmatch(minor)), url, "a key of components", minor, "a minor of Kubernetes, such as 1.35")
    place = f'components["{minor}"]'
    require(isinstance(versions, dict), url, place, versions, 'an object of versions by name, such as {"etcd": "3.6.16"}')
    for name, version in versions.items():
        wanted = 'a version as text, such as "3.6.16"'
        require(isinstance(version, str) and bool(version), url, f'{place}["{name}"]', version, wanted)
