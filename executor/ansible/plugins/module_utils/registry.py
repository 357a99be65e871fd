# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Registries of images, over the API of the OCI distribution specification: manifests and blobs, each held to its digest."""

from __future__ import annotations

import hashlib
import json
import re
import urllib.error
import urllib.parse
from typing import NamedTuple

from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle_source import origin
from ansible_collections.clusterwright.cluster.plugins.module_utils.downloads import copy
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

ACCEPT = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# Docker Hub's images are called docker.io's, and its API is elsewhere.
API = {"docker.io": "registry-1.docker.io"}
MANIFEST_LIMIT = 4 << 20
PARAMETER = re.compile(r'([a-zA-Z_]+)="([^"]*)"')


class Reference(NamedTuple):
    """An image with its tag: `registry.k8s.io/pause:3.10.1`."""

    host: str
    repository: str
    tag: str

    def url(self, kind: str, what: str) -> str:
        return f"https://{API.get(self.host, self.host)}/v2/{self.repository}/{kind}/{what}"


def parse(text: str) -> Reference:
    name, _colon, tag = text.rpartition(":")
    host, _slash, repository = name.partition("/")
    if not tag or not repository:
        raise StepFailure(
            "InvalidVariables", f"{text} in the catalogue is no image with a host and a tag, such as registry.k8s.io/pause:3.10.1"
        )
    return Reference(host, repository, tag)


class Registry:
    """Reads from registries that let anybody pull, by a token where they want one."""

    def __init__(self, source) -> None:
        self._source = source
        self._tokens: dict = {}

    def open(self, reference: Reference, kind: str, what: str):
        """The answer for a manifest or a blob. Where a server asks for a token, be it one that the registry leads to, it gets one."""
        url = reference.url(kind, what)
        headers = {"Accept": ACCEPT} if kind == "manifests" else {}
        place = (origin(url), reference.repository)
        try:
            return self._source.open(url, headers={**headers, **self._authorization(place)})
        except urllib.error.HTTPError as error:
            challenge, asks = error.headers.get("WWW-Authenticate", ""), error.url or url
            if error.code != 401 or not challenge.lower().startswith("bearer "):
                raise
        there = (origin(asks), reference.repository)
        if there == place or there not in self._tokens:
            self._tokens[there] = self._token(challenge, asks, reference.repository)
        return self._source.open(asks, headers={**headers, **self._authorization(there)})

    def _authorization(self, place: tuple) -> dict:
        return {"Authorization": f"Bearer {self._tokens[place]}"} if place in self._tokens else {}

    def _token(self, challenge: str, url: str, repository: str) -> str:
        """A token for anybody, from where the registry says."""
        fields = dict(PARAMETER.findall(challenge))
        realm = fields.get("realm", "")
        if not realm.startswith("https://"):
            raise StepFailure("ArtifactSourceUnavailable", f"{url}: the registry gives tokens at {realm!r}, which is no https URL")
        query = {name: fields[name] for name in ("service", "scope") if name in fields}
        query.setdefault("scope", f"repository:{repository}:pull")
        separator = "&" if "?" in realm else "?"
        with self._source.open(f"{realm}{separator}{urllib.parse.urlencode(query)}") as answer:
            text = answer.read(MANIFEST_LIMIT)
        try:
            given = json.loads(text)
        except ValueError:
            given = None
        token = (given.get("token") or given.get("access_token")) if isinstance(given, dict) else None
        if not isinstance(token, str) or not token:
            raise StepFailure("ArtifactSourceUnavailable", f"{url}: {realm} gives no token")
        return token

    def manifest(self, reference: Reference, what: str) -> tuple:
        """The manifest of that tag or digest, as bytes, and its digest. One that is asked for by digest has that digest."""
        with self.open(reference, "manifests", what) as answer:
            content = answer.read(MANIFEST_LIMIT)
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if DIGEST.fullmatch(what) and digest != what:
            raise StepFailure(
                "DigestMismatch",
                f"{reference.url('manifests', what)}: the manifest that came has the digest {digest}; nothing of the image was used:"
                " look at who is between this machine and the registry",
            )
        return content, digest

    def blob(self, reference: Reference, digest: str, size: int, out) -> None:
        """Writes a blob of that size. DigestMismatch, or ConnectionError where it ends early."""
        with self.open(reference, "blobs", digest) as answer:
            got, came = copy(answer, out, size)
        if came != size:
            raise ConnectionError(f"ended after {came} of {size} bytes")
        if f"sha256:{got}" != digest:
            raise StepFailure(
                "DigestMismatch",
                f"{reference.url('blobs', digest)}: what came has sha256 {got}; nothing of the image was used: look at who is between"
                " this machine and the registry",
            )


def of_machine(manifest: bytes, reference: Reference, arch: str) -> str | None:
    """Of a list of manifests, the digest of the one for this architecture; None: it is no list."""
    value = parsed(manifest, reference)
    if "manifests" not in value:
        return None
    there = []
    for entry in value["manifests"]:
        platform = entry.get("platform") or {}
        there.append(f"{platform.get('os')}/{platform.get('architecture')}")
        if there[-1] == f"linux/{arch}":
            return checked(entry.get("digest"), reference)
    raise StepFailure(
        "ArtifactNotFound",
        f"{reference.host}/{reference.repository}:{reference.tag} is not there for linux/{arch}, but for {', '.join(there) or 'nothing'}",
    )


def blobs(manifest: bytes, reference: Reference) -> list:
    """(digest, size) of an image's configuration and then its layers, each once."""
    value = parsed(manifest, reference)
    found = []
    for blob in [value.get("config"), *value.get("layers", [])]:
        if not isinstance(blob, dict) or type(blob.get("size")) is not int:
            raise broken(reference, "a configuration or a layer without a size")
        known = (checked(blob.get("digest"), reference), blob["size"])
        if known not in found:
            found.append(known)
    return found


def parsed(manifest: bytes, reference: Reference) -> dict:
    try:
        value = json.loads(manifest)
    except ValueError as error:
        raise broken(reference, f"no JSON: {error}") from error
    lists = [value.get(key, []) for key in ("manifests", "layers")] if isinstance(value, dict) else [None]
    if not all(isinstance(one, list) and all(isinstance(entry, dict) for entry in one) for one in lists):
        raise broken(reference, "no manifest")
    return value


def checked(digest: object, reference: Reference) -> str:
    if not isinstance(digest, str) or not DIGEST.fullmatch(digest):
        raise broken(reference, f"the digest {digest!r}, and only sha256 is known here")
    return digest


def broken(reference: Reference, what: str) -> StepFailure:
    return StepFailure("ArtifactInvalid", f"the manifest of {reference.host}/{reference.repository}:{reference.tag} has {what}")
