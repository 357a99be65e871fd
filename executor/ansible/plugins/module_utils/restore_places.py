# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Where a restore of etcd keeps what it needs on a machine, and the record of what was prepared there.

The data directory itself may be a mount point, so all of it is below, and only what is in it is renamed."""

from __future__ import annotations

import os
import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd_data, membership
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

ID = re.compile(r"[a-z0-9]{8}")
HELD = f"{membership.HOME}/held"
PREPARED = "restore-"


def checked_id(restore: object) -> str:
    """The restore's ID, which names directories."""
    if not isinstance(restore, str) or not ID.fullmatch(restore):
        raise StepFailure("InvalidVariables", f"etcd_restore.id is {restore!r}, and must be 8 characters of a-z and 0-9")
    return restore


def cluster_number(text: str) -> int:
    """The cluster's ID, of its hexadecimal form."""
    try:
        number = int(text, 16)
    except ValueError:
        number = 0
    if not 0 < number < 2**64:
        raise StepFailure("InvalidVariables", f"etcd_restore.cluster_id is {text!r}, and must be hexadecimal, of 64 bits")
    return number


class Places:
    """The directories and files of one restore in etcd's data directory."""

    def __init__(self, data_directory: str, restore: object) -> None:
        self.id = checked_id(restore)
        self.data = data_directory
        self.member = os.path.join(data_directory, "member")
        self.before = f"{self.member}.before-{self.id}"
        self.undone = f"{self.member}.undone-{self.id}"
        self.prepared = os.path.join(data_directory, PREPARED + self.id)
        self.snapshot = os.path.join(self.prepared, "snapshot.db")
        self.arriving = f"{self.snapshot}.part"
        self.new_data = os.path.join(self.prepared, "data")
        self.new_member = os.path.join(self.new_data, "member")
        self.record = os.path.join(self.prepared, "staged.json")

    def staged(self) -> dict:
        """What was prepared here: sha256, size, revision, bump, clusterID, memberID, members. Empty when nothing was."""
        return membership.read(self.record)

    def cluster_here(self) -> int | None:
        """ID of the cluster whose data etcd works with, or would; None when there is none."""
        return cluster_of(self.member)

    def cluster_prepared(self) -> int | None:
        """ID of the cluster whose data lies ready."""
        return cluster_of(self.new_member)

    def others(self) -> list:
        """What other restores have left."""
        try:
            names = sorted(os.listdir(self.data))
        except OSError:
            return []
        return [name for name in names if name.startswith(PREPARED) and name != os.path.basename(self.prepared)]


def cluster_of(member: str) -> int | None:
    found = etcd_data.identity_of(member)
    return None if found is None else found[0]


def record_cluster(record: dict) -> int | None:
    """ID of the cluster that was prepared, by its record."""
    try:
        return int(str(record.get("clusterID")), 16)
    except ValueError:
        return None
