# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""A new cluster of etcd begins with data that was made of a backup: it takes the place of data that is not there."""

from __future__ import annotations

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd_data, files, moves
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.restore_places import Places, record_cluster


def begin(data_directory: str, restore: str, members: list, token: str) -> None:
    """Puts the data that lies ready into its place, where there is none. Fails unless it is of this very cluster."""
    places = Places(data_directory, restore)
    wanted = etcd_data.new_cluster(members, token)
    record = places.staged()
    if record_cluster(record) != wanted or places.cluster_prepared() != wanted:
        raise StepFailure(
            "BackupNotStaged",
            f"{places.new_member} holds no data of the cluster that begins, {wanted:x}: run the step stage-backup"
            " again",
        )
    if os.path.lexists(places.member):
        # Without a log it is nobody's, and the renaming below would fail.
        if os.listdir(places.member):
            raise StepFailure(
                "EtcdForeignData",
                f"{places.member} is there and no data of etcd: look what it is, then run the reset step",
            )
        os.rmdir(places.member)
    os.chmod(places.new_member, 0o700)
    moves.rename(places.new_member, places.member)


def forget_snapshot(data_directory: str, restore: str) -> None:
    """Removes the snapshot; what tells which data this is stays."""
    places = Places(data_directory, restore)
    for path in (places.snapshot, places.arriving):
        if os.path.exists(path):
            files.remove(path)
