# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Puts restored data of etcd in the place of what is there, and back. What is to be done is decided by whose data lies where, so an
attempt that was cut short between two renames is taken up, and nothing is done twice."""

from __future__ import annotations

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import moves, removal
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.restore_places import (
    Places,
    cluster_number,
    cluster_of,
    record_cluster,
)


def stray(places: Places) -> StepFailure:
    """Something made data while etcd was to be stopped."""
    return StepFailure(
        "EtcdRestoreUnclear",
        f"{places.before} holds the data from before the restore, and {places.member} data that is neither it nor the"
        " restored: somebody started etcd meanwhile. Look what it is, and move it away",
    )


def place(source: str, target: str) -> None:
    os.chmod(source, 0o700)
    moves.rename(source, target)


class Restore:
    """The restored data goes in."""

    def __init__(self, places: Places, cluster_id: str, digest: str) -> None:
        self.places = places
        self.cluster = cluster_number(cluster_id)
        self.digest = digest

    def due(self) -> bool:
        return self.places.cluster_here() != self.cluster

    def check(self) -> None:
        """Fails unless all that `swap` needs is there, and was made of the right file."""
        record = self.places.staged()
        if record and record.get("sha256") != self.digest:
            self.refuse(f"it was prepared from another file, of SHA-256 {record.get('sha256')}, and not {self.digest}")
        if not self.due():
            return
        if not record:
            self.refuse("nothing was prepared")
        if record_cluster(record) != self.cluster:
            self.refuse(f"it was prepared for cluster {record.get('clusterID')}, and not {self.cluster:x}")
        if self.places.cluster_prepared() != self.cluster:
            self.refuse(f"{self.places.new_member} does not hold the data that was prepared")
        if os.path.lexists(self.places.member) and os.path.lexists(self.places.before):
            raise stray(self.places)

    def refuse(self, why: str) -> None:
        raise StepFailure("BackupNotStaged", f"restore {self.places.id}: {why}; run the step stage-backup again")

    def check_revision(self, current: int | None) -> None:
        """The restored data must begin above all that clients have seen, and etcd worked on since it was prepared."""
        record = self.places.staged()
        begins = (record.get("revision") or 0) + (record.get("bump") or 0)
        if current is not None and current >= begins:
            self.refuse(f"it begins at revision {begins}, and etcd has come to {current} since")

    def swap(self) -> None:
        if os.path.lexists(self.places.member):
            place(self.places.member, self.places.before)
        place(self.places.new_member, self.places.member)

    def revision(self) -> int | None:
        """What etcd must have come to with it."""
        record = self.places.staged()
        return record["revision"] + record["bump"] if record else None


class Undo:
    """The data from before comes back."""

    def __init__(self, places: Places, cluster_id: str) -> None:
        self.places = places
        known = cluster_number(cluster_id) if cluster_id else record_cluster(places.staged())
        self.new = cluster_of(places.undone) if known is None else known

    @property
    def cluster(self) -> int:
        return self.places.cluster_here() or 0

    def due(self) -> bool:
        there = os.path.lexists(self.places.before)
        return there or (self.new is not None and self.places.cluster_here() == self.new)

    def check(self) -> None:
        """Fails unless the data from before is there, or in its place."""
        here = self.places.cluster_here()
        if self.due():
            if cluster_of(self.places.before) is None:
                raise StepFailure(
                    "OldDataMissing",
                    f"{self.places.before} holds no data of etcd, and {self.places.member} holds the restored: there is"
                    " nothing to go back to; restore another backup",
                )
            if os.path.lexists(self.places.member) and self.new is not None and here != self.new:
                raise stray(self.places)
            return
        if self.new is None:
            raise StepFailure(
                "OldDataMissing",
                f"neither {self.places.record} nor etcd_restore.cluster_id tells whose data is in {self.places.member}",
            )
        if here is None:
            raise StepFailure("EtcdDataMissing", f"{self.places.member} holds no data of etcd")

    def check_revision(self, _current: int | None) -> None:
        """Nobody wrote to the old data since."""

    def swap(self) -> None:
        if os.path.lexists(self.places.member):
            removal.remove(self.places.undone)
            place(self.places.member, self.places.undone)
        place(self.places.before, self.places.member)

    def revision(self) -> int | None:
        """Whatever the data has."""
        return None
