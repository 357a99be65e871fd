# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The mount table, read as text: asking a file system whose server is gone would hang."""

from __future__ import annotations

import re
from typing import NamedTuple

from ansible_collections.clusterwright.cluster.plugins.module_utils.command import Output, attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

NETWORK = frozenset("nfs nfs4 cifs smb3 ceph 9p glusterfs lustre beegfs ocfs2 gfs2 afs orangefs".split())
# What they hold is gone with the machine's Pods in any case, so a busy one may vanish from the tree before it ends.
EPHEMERAL = frozenset("tmpfs ramfs overlay proc sysfs nsfs mqueue cgroup cgroup2 devpts bpf tracefs debugfs".split())
OCTAL = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """One line of the table."""

    point: str
    kind: str

    @property
    def remote(self) -> bool:
        """Whether what is there belongs to others, too."""
        return self.kind in NETWORK or self.kind.startswith("fuse")


def decoded(field: str) -> str:
    return OCTAL.sub(lambda found: chr(int(found.group(1), 8)), field)


def table() -> list:
    """All mounts, the one made first in front."""
    found = []
    for line in text("/proc/self/mountinfo").splitlines():
        before, _dash, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) > 4 and after:
            found.append(Mount(decoded(fields[4]), after.split(" ")[0]))
    return found


def at(path: str) -> Mount | None:
    """The uppermost mount exactly there."""
    there = [mount for mount in table() if mount.point == path]
    return there[-1] if there else None


def below(path: str) -> list:
    """Mounts below a real path, in the order in which they can be unmounted."""
    prefix = path.rstrip("/") + "/"
    found = [mount for mount in table() if mount.point.startswith(prefix)]
    return sorted(reversed(found), key=lambda mount: mount.point.count("/"), reverse=True)


def unmount(mount: Mount, timeout: float = 30) -> Output:
    """Unmounts, so that what was written is on its device. Only what lives elsewhere or nowhere may be cut off instead: its server may
    be gone, and a disk that is still in use would go on changing unseen."""
    output = attempt("umount", mount.point, timeout=timeout)
    if not output.ok and mount.remote:
        output = attempt("umount", "--force", mount.point, timeout=timeout)
    if not output.ok and (mount.remote or mount.kind in EPHEMERAL):
        output = attempt("umount", "--lazy", mount.point, timeout=timeout)
    return output
