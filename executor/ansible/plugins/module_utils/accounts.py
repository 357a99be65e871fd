# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Users of the machine that services of ours run as, and nobody logs in as."""

from __future__ import annotations

import grp
import pwd

from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

# By it a reset knows those that were made here.
COMMENT = "Made by clusterwright"


def ensure(name: str, home: str) -> int:
    """Makes the user with a group of its name, unless they are there; the ID of the group."""
    try:
        pwd.getpwnam(name)
    except KeyError:
        words = ("--system", "--user-group", "--no-create-home", "--home-dir", home, "--shell", "/usr/sbin/nologin", "--comment", COMMENT)
        output = attempt("useradd", *words, name)
        if not output.ok:
            raise StepFailure("MachineError", f"failed to make the user {name}: {output.said}") from None
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise StepFailure("MachineError", f"there is a user {name}, and no group of that name: make one (groupadd --system {name})") from None


def made(name: str) -> bool:
    """Whether the user was made here."""
    try:
        return pwd.getpwnam(name).pw_gecos == COMMENT
    except KeyError:
        return False


def remove(name: str) -> None:
    """Removes the user that was made here, as far as that goes, and its group with it."""
    if made(name):
        attempt("userdel", name)
