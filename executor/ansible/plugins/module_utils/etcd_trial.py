# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""A member's configuration on trial: the file of before is kept until the member is well with the new one, and comes back if it is not.
It is on disk, so that an attempt that was cut off is taken up."""

from __future__ import annotations

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd_members, files, membership
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

FORMER = f"{membership.HOME}/etcd-former.json"
QUOTA = "ETCD_QUOTA_BACKEND_BYTES"


def settings(content: str | None) -> dict:
    """The variables of an environment file, by name."""
    lines = [line for line in (content or "").splitlines() if "=" in line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


class Trial:
    """The environment file of this machine's member, at `path`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.former = membership.read(FORMER).get("content") if path else None

    def begin(self, wanted: list, size: int) -> None:
        """Keeps what is there, before files of `wanted` are written. Of an attempt that was cut off, what was there before it stays kept.
        `size`: of the member's database in bytes. Fails with ConfigurationRefused where it has no room in what is wanted."""
        new = next((entry["content"] for entry in wanted if entry["path"] == self.path), None)
        now = files.text(self.path) if self.path else None
        if new is None or now is None or new == now:
            return
        refuse_small(settings(now).get(QUOTA), settings(new).get(QUOTA), size)
        if self.former is None:
            membership.save(FORMER, {"content": now})
            self.former = now

    def differences(self) -> str:
        """What is on trial, as `NAME=new (before: old)`; empty where nothing is."""
        if self.former is None:
            return ""
        old, new = settings(self.former), settings(files.text(self.path))
        names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
        return ", ".join(f"{name}={new.get(name, '')} (before: {old.get(name, 'not set')})" for name in names)

    def put_back(self) -> None:
        """The file is what it was."""
        if self.former is not None:
            files.write(self.path, self.former, os.stat(self.path).st_mode & 0o7777)
        self.close()

    def close(self) -> None:
        """It is over."""
        files.remove(FORMER)
        self.former = None


def refuse_small(old: str | None, new: str | None, size: int) -> None:
    """A database that is larger than what it may be takes no more writes, whatever is deleted."""
    if new == old or not (new or "").isdigit() or size < int(new):
        return
    raise StepFailure(
        "ConfigurationRefused",
        f"configuration.etcd.quotaBackendBytes is {new}, and this member's database has {size} bytes ({etcd_members.mib(size)}): etcd would"
        " take no more writes: allow more, or defragment etcd first (annotation clusterwright.dev/defragment)",
    )
