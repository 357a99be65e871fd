# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Authorities that this machine trusts beside those of its distribution. Programs read them when they start; of ours only containerd
asks servers that others run."""

from __future__ import annotations

import glob
import hashlib
import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, restarts, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

FOLDER = "/usr/local/share/ca-certificates"
PREFIX = "clusterwright-"
# What the distribution's program makes of all of them.
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
CONTAINERD = "containerd.service"
GOING = ".going"


def ours() -> list:
    return sorted(glob.glob(f"{FOLDER}/{PREFIX}*.crt"))


def going() -> list:
    """Those that go, until the bundle is without them: the distribution's program reads no file of another name."""
    return sorted(glob.glob(f"{FOLDER}/{PREFIX}*{GOING}"))


def lines(text: str) -> set:
    return {line.strip() for line in text.splitlines() if line.strip()}


def are_in_bundle(certificates: list) -> bool:
    """Whether an update that was cut short was made after all."""
    try:
        with open(BUNDLE, encoding="utf-8", errors="replace") as source:
            known = lines(source.read())
    except FileNotFoundError:
        return not certificates
    return all(lines(certificate) <= known for certificate in certificates)


def update() -> None:
    """Has the distribution make its bundle anew."""
    output = attempt("update-ca-certificates", timeout=120)
    if not output.ok:
        raise StepFailure("AuthoritiesRefused", f"failed to make configuration.machine.trustedCAs trusted: {output.said}")
    for path in going():
        files.remove(path)


def apply(certificates: list, check: bool) -> list:
    """Makes these trusted, and no others that were given before. What changed."""
    wanted = {f"{FOLDER}/{PREFIX}{hashlib.sha256(text.encode()).hexdigest()[:16]}.crt": text.strip() + "\n" for text in certificates}
    gone = [path for path in ours() if path not in wanted]
    if not check:
        for path in gone:
            os.rename(path, path + GOING)
    changed = gone + [path for path, text in wanted.items() if files.write(path, text, 0o644, check)]
    if not changed and not going() and are_in_bundle(list(wanted.values())):
        return restart_containerd(check) if wanted else []
    if not check:
        update()
        restart_containerd(check)
    return changed or [BUNDLE]


def restart_containerd(check: bool) -> list:
    """Restarts containerd if it runs, and began before the authorities were there."""
    now = units.state(CONTAINERD)
    if now.get("ActiveState") != "active" or not restarts.is_older(now, [BUNDLE]):
        return []
    if not check:
        units.systemctl("restart", CONTAINERD, what=f"restart {CONTAINERD}")
    return [CONTAINERD]


def forget() -> None:
    """Takes back what was made trusted, as far as that goes: the machine leaves its cluster."""
    if not ours() and not going():
        return
    for path in [*ours(), *going()]:
        files.remove(path)
    attempt("update-ca-certificates", timeout=120)
