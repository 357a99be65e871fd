# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The public keys of those with which ssh may have logged in to a machine, as ssh itself finds them."""

from __future__ import annotations

import os
import shlex
import subprocess


def said(*argv: str) -> list:
    """The lines that a program said; none, when it failed."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def identity_files(address: str, arguments: str) -> list:
    """The files with keys that ssh would try."""
    options = [line.partition(" ")[::2] for line in said("ssh", "-G", *shlex.split(arguments), address or "localhost")]
    if ("pubkeyauthentication", "no") in options or ("pubkeyauthentication", "false") in options:
        return []
    return [os.path.expanduser(value) for name, value in options if name == "identityfile"]


def public_key(path: str) -> str:
    words = " ".join(said("ssh-keygen", "-y", "-P", "", "-f", path)).split() if os.path.exists(path) else []
    return words[1] if len(words) > 1 else ""


def login_keys(address: str, arguments: str, path: str) -> list:
    """The keys of the identity files that ssh has for the address with these arguments, and of the file at `path`, if there is one."""
    paths = ([path] if path else []) + identity_files(address, arguments)
    return [key for key in dict.fromkeys(map(public_key, paths)) if key]
