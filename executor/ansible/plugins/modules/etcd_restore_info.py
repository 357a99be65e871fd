#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Reports what decides how a backup of etcd is restored on this machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_restore_info
short_description: Reports the revision, the room and the versions of this machine's etcd, and what of a restore is here
description:
  - Makes the directory into which the backup will come, unless in check mode; read-only beside that.
  - What cannot be found out is left out of the report; the task does not fail, since etcd may be broken.
extends_documentation_fragment:
  - clusterwright.cluster.arguments.etcd
  - clusterwright.cluster.arguments.restore
author:
  - Clusterwright developers
"""

import os
import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd_data, etcd_revision
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.digests import sha256
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import LOCAL, Etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.restore_places import Places, record_cluster

VERSION = re.compile(r"version: (\d+\.\d+\.\d+\S*)", re.IGNORECASE)
PROGRAMS = {"etcd": ("etcd", "--version"), "etcdutl": ("etcdutl", "version")}


def size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def size_below(directory: str) -> int:
    """Bytes in all files of a directory."""
    paths = (os.path.join(folder, name) for folder, _folders, names in os.walk(directory) for name in names)
    return sum(map(size_of, paths))


def free_bytes(directory: str) -> int:
    """What may still be written there."""
    while not os.path.isdir(directory):
        directory = os.path.dirname(directory)
    status = os.statvfs(directory)
    return status.f_bavail * status.f_frsize


def versions() -> dict:
    found = {name: VERSION.search(attempt(*argv).out) for name, argv in PROGRAMS.items()}
    return {name: match.group(1) for name, match in found.items() if match}


def snapshot_digest(places: Places, record: dict) -> str:
    """SHA-256 of the snapshot that is here; empty when none is. It is read only where no record tells."""
    if not os.path.exists(places.snapshot):
        return ""
    if record.get("sha256") and record.get("size") == size_of(places.snapshot):
        return record["sha256"]
    return sha256(places.snapshot)


def prepare(places: Places) -> None:
    """Makes the directory for what arrives, closed to everybody else, as etcd wants its own to be."""
    os.makedirs(places.data, mode=0o700, exist_ok=True)
    os.makedirs(places.prepared, mode=0o700, exist_ok=True)
    os.chmod(places.prepared, 0o700)


def report(params: dict, places: Places) -> dict:
    record = places.staged()
    found = {
        "kind": "restore-info",
        "databaseBytes": size_of(etcd_data.database(places.member)),
        "freeBytes": free_bytes(places.data),
        "preparedBytes": size_below(places.prepared),
        "versions": versions(),
        "snapshotSha256": snapshot_digest(places, record),
        "others": places.others(),
    }
    cluster = record_cluster(record)
    found["placed"] = cluster is not None and cluster == places.cluster_here()
    if cluster is not None and (found["placed"] or cluster == places.cluster_prepared()):
        found["staged"] = {key: record.get(key) for key in ("sha256", "bump", "clusterID")}
    if found["placed"]:
        # What etcd has come to is the backup's own, which nothing has to begin above.
        return found
    revision = etcd_revision.known(Etcd(params["pki_directory"], [LOCAL]), places.member)
    if revision is not None:
        found["revision"] = revision
    return found


def work(call) -> dict:
    places = Places(call.params["data_directory"], call.params["id"])
    absent = not os.path.isdir(places.prepared)
    if not call.check_mode:
        prepare(places)
    found = report(call.params, places)
    said = f"revision {found.get('revision', 'unknown')}, {found['freeBytes'] >> 20} MiB free"
    left = f"; left by other restores: {', '.join(found['others'])}" if found["others"] else ""
    return {"changed": absent and not call.check_mode, "clusterwright": found, "msg": said + left}
