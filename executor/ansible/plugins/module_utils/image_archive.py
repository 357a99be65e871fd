# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Archives of images, as C(ctr images import) takes them: an OCI layout of one image in a tar, with the registry's own bytes."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tempfile

from ansible_collections.clusterwright.cluster.plugins.module_utils import registry as registries
from ansible_collections.clusterwright.cluster.plugins.module_utils.downloads import retried
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def index(artifact: dict, manifest: bytes) -> dict:
    """What says how containerd is to call the image."""
    return {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [
            {
                "mediaType": json.loads(manifest).get("mediaType", MANIFEST),
                "digest": f"sha256:{hashlib.sha256(manifest).hexdigest()}",
                "size": len(manifest),
                "platform": {"os": "linux", "architecture": artifact["arch"]},
                "annotations": {
                    "io.containerd.image.name": f"{artifact['name']}:{artifact['version']}",
                    "org.opencontainers.image.ref.name": artifact["version"],
                },
            }
        ],
    }


def check_configuration(content: bytes, artifact: dict, reference) -> None:
    """Refuses an image of another architecture: a list may name one wrongly, and a registry without lists has but one."""
    found = registries.parsed(content, reference)
    is_for = f"{found.get('os')}/{found.get('architecture')}"
    if is_for != f"linux/{artifact['arch']}":
        raise StepFailure("ArtifactInvalid", f"{artifact['image']} is for {is_for} alone, and this machine is linux/{artifact['arch']}")


def write(registry, artifact: dict, manifest: bytes, target: str, explained) -> None:
    """Downloads what the manifest names, and writes the archive. Each blob is verified before it is in the archive."""
    reference = registries.parse(artifact["image"])
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:
        add(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        add(archive, "index.json", json.dumps(index(artifact, manifest)).encode("utf-8"))
        add(archive, f"blobs/sha256/{hashlib.sha256(manifest).hexdigest()}", manifest)
        for number, (digest, size) in enumerate(registries.blobs(manifest, reference)):
            with tempfile.TemporaryFile(dir=os.path.dirname(target)) as blob:
                download(registry, reference, (digest, size), blob, explained)
                if number == 0:
                    check_configuration(blob.read(), artifact, reference)
                    blob.seek(0)
                add(archive, f"blobs/{digest.replace(':', '/')}", blob, size)


def download(registry, reference, blob: tuple, out, explained) -> None:
    digest, size = blob

    def attempt() -> None:
        out.seek(0)
        out.truncate()
        registry.blob(reference, digest, size, out)

    retried(attempt, reference.url("blobs", digest), explained)
    out.seek(0)


def add(archive: tarfile.TarFile, name: str, content, size: int | None = None) -> None:
    entry = tarfile.TarInfo(name)
    entry.mode = 0o644
    if isinstance(content, bytes):
        content, size = io.BytesIO(content), len(content)
    entry.size = size
    archive.addfile(entry, content)
