# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Keys with which administrators log in to this machine, between marks in `authorized_keys` of the user as whom runs log in. Other lines
stay as they are, and the key with which the run itself logged in is never taken out."""

from __future__ import annotations

import os
import pwd
import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, marked_lines, membership, selinux
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt, find
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

# Where keys of ours are: {path}.
KNOWN = f"{membership.HOME}/authorized-keys.json"
KEY = re.compile(r"(?:^|\s)(?:ssh-[a-z0-9]+|ecdsa-sha2-[a-z0-9-]+|sk-[-a-z0-9]+@openssh\.com)\s+(AAAA[A-Za-z0-9+/=]+)")


def key_of(line: str) -> str:
    """The key of a line, without its type, options and comment; empty, if it has none."""
    found = None if line.lstrip().startswith("#") else KEY.search(line)
    return found.group(1) if found else ""


def place(user: str) -> tuple:
    """The user's file, and the user's entry in passwd."""
    try:
        entry = pwd.getpwnam(user)
    except KeyError as error:
        raise StepFailure("AuthorizedKeysRefused", f"configuration.machine.authorizedKeys: the machine has no user {user}") from error
    path = f"{entry.pw_dir}/.ssh/authorized_keys"
    read = files_read(user)
    if read and not {path, ".ssh/authorized_keys", "%h/.ssh/authorized_keys"}.intersection(read):
        raise StepFailure(
            "AuthorizedKeysRefused",
            f"configuration.machine.authorizedKeys: sshd reads keys of {user} from {' '.join(read)}, and not from {path}: have"
            " AuthorizedKeysFile of sshd_config name .ssh/authorized_keys, or take authorizedKeys back",
        )
    return path, entry


def files_read(user: str) -> list:
    """The files in which sshd looks for keys of the user, as far as it tells."""
    sshd = find("sshd")
    output = attempt(sshd, "-T", "-C", f"user={user},host=localhost,addr=127.0.0.1", timeout=10) if sshd else None
    for line in output.out.splitlines() if output and output.ok else []:
        name, *values = line.split()
        if name == "authorizedkeysfile":
            return values
    return []


def lines_for(content: str, keys: list, login: list) -> list:
    """The lines that are to be ours: keys that nobody else has put there, and what lets the run in, if nothing else there does."""
    others, ours = marked_lines.parted(content)
    there = {key_of(line) for line in others}
    wanted = {key_of(line): line.strip() for line in keys}
    kept = {key_of(line): line for line in ours if key_of(line) in login}
    return [line for key, line in {**kept, **wanted}.items() if key not in there]


def set_lines(path: str, keys: list, login: list, check: bool) -> list:
    content = files.read(path)
    text = marked_lines.with_lines(content, lines_for(content, keys, login))
    if text.rstrip("\n") == content.rstrip("\n"):
        return []
    if not check:
        files.replace_foreign(path, text)
    return [path]


def create(path: str, entry: pwd.struct_passwd) -> None:
    """An empty file of the user's, where there is none."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        os.mkdir(folder, 0o700)
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    if not os.path.exists(path):
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        os.fchown(descriptor, entry.pw_uid, entry.pw_gid)
        os.close(descriptor)
    # sshd may read them only with labels of their own.
    selinux.restore([folder, path])


def apply(user: str, keys: list, login: list, check: bool) -> list:
    """Lets these keys in as the user, and no others that were given before. `login`: keys of the run, of which none is taken out. What
    changed."""
    known = membership.read(KNOWN).get("path", "")
    if not keys:
        changed = set_lines(known, [], login, check) if known else []
        if known and not check:
            files.remove(KNOWN)
        return changed
    path, entry = place(user)
    changed = set_lines(known, [], login, check) if known and known != path else []
    if not check:
        membership.save(KNOWN, {"path": path})
        create(path, entry)
    return changed + set_lines(path, keys, login, check)
