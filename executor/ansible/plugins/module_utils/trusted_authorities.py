# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Authorities that this machine trusts beside those of its distribution. Programs read them when they start; of ours only containerd
asks servers that others run."""

from __future__ import annotations

import glob
import hashlib
import os
import re
from typing import NamedTuple

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, membership, restarts, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt, find
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure



class Store(NamedTuple):
    """Where a distribution has authorities, and the program that makes one bundle of all of them."""

    program: str
    folder: str
    bundle: str
    # Where those are that go, until the bundle is without them: nothing that the program reads.
    going: str


# The program of Debian and Ubuntu reads only names that end in .crt, the one of the RHEL family every file.
STORES = (
    Store(
        "update-ca-certificates",
        "/usr/local/share/ca-certificates",
        "/etc/ssl/certs/ca-certificates.crt",
        "/usr/local/share/ca-certificates",
    ),
    Store(
        "update-ca-trust",
        "/etc/pki/ca-trust/source/anchors",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        f"{membership.HOME}/authorities",
    ),
)
PREFIX = "clusterwright-"
CONTAINERD = "containerd.service"
GOING = ".going"
CERTIFICATE = re.compile(r"-----BEGIN (?:TRUSTED )?CERTIFICATE-----(.*?)-----END", re.DOTALL)


def store() -> Store:
    """The machine's: the first whose program is here."""
    return next((one for one in STORES if find(one.program)), STORES[0])


def ours() -> list:
    return sorted(glob.glob(f"{store().folder}/{PREFIX}*.crt"))


def going() -> list:
    """Those that go, until the bundle is without them."""
    return sorted(glob.glob(f"{store().going}/{PREFIX}*{GOING}"))


def blocks(text: str) -> set:
    """Certificates, however their lines are broken."""
    return {"".join(found.split()) for found in CERTIFICATE.findall(text)}


def are_in_bundle(certificates: list) -> bool:
    """Whether an update that was cut short was made after all."""
    try:
        with open(store().bundle, encoding="utf-8", errors="replace") as source:
            known = blocks(source.read())
    except FileNotFoundError:
        return not certificates
    return all(blocks(certificate) <= known for certificate in certificates)


def update(certificates: list) -> None:
    """Has the distribution make its bundle anew, of which these are then a part."""
    program = store().program
    output = attempt(program, timeout=120)
    if not output.ok:
        raise StepFailure("AuthoritiesRefused", f"failed to make configuration.machine.trustedCAs trusted: {output.said}")
    if not are_in_bundle(certificates):
        raise StepFailure(
            "AuthoritiesRefused",
            f"configuration.machine.trustedCAs: {program} left some out of {store().bundle}: a certificate that is no authority's"
            " (basicConstraints without CA:TRUE) is not trusted; give the authority that issued it",
        )
    for path in going():
        files.remove(path)


def apply(certificates: list, check: bool) -> list:
    """Makes these trusted, and no others that were given before. What changed."""
    place = store()
    wanted = {f"{place.folder}/{PREFIX}{hashlib.sha256(text.encode()).hexdigest()[:16]}.crt": text.strip() + "\n" for text in certificates}
    gone = [path for path in ours() if path not in wanted]
    if not check:
        for path in gone:
            os.makedirs(place.going, exist_ok=True)
            os.rename(path, f"{place.going}/{os.path.basename(path)}{GOING}")
    changed = gone + [path for path, text in wanted.items() if files.write(path, text, 0o644, check)]
    if not changed and not going() and are_in_bundle(list(wanted.values())):
        return restart_containerd(check) if wanted else []
    if not check:
        update(list(wanted.values()))
        restart_containerd(check)
    return changed or [place.bundle]


def restart_containerd(check: bool) -> list:
    """Restarts containerd if it runs, and began before the authorities were there."""
    now = units.state(CONTAINERD)
    if now.get("ActiveState") != "active" or not restarts.is_older(now, [store().bundle]):
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
    attempt(store().program, timeout=120)
