# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Whom the kubeconfigs of this machine believe: all that ca.crt holds. kubeadm writes only the first certificate of it into them."""

from __future__ import annotations

import base64
import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import certificate_places, certificates, files
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import field
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

DATA = "certificate-authority-data"
LINE = re.compile(rf"^(\s*{DATA}:).*$", re.MULTILINE)


def authorities(kubeconfig: str) -> list:
    """The certificates that a kubeconfig's text believes; empty where it names a file, or what it has is none."""
    try:
        return certificates.all_in(base64.b64decode(field(kubeconfig, DATA)).decode("utf-8", "replace"))
    except ValueError:
        return []


def with_authorities(kubeconfig: str, wanted: str) -> str:
    """The kubeconfig's text, believing these; as it is where it does already, or names a file."""
    if authorities(kubeconfig) == certificates.all_in(wanted):
        return kubeconfig
    data = base64.b64encode(f"{wanted.strip()}\n".encode("utf-8")).decode("ascii")
    return LINE.sub(rf"\g<1> {data}", kubeconfig, count=1)


def trust(check: bool) -> list:
    """Makes all kubeconfigs of this machine believe what ca.crt holds; the paths of those that did not."""
    wanted = text(certificate_places.pki("ca"))
    changed = []
    for path in certificate_places.kubeconfigs().values() if certificates.all_in(wanted) else ():
        now = text(path)
        meant = with_authorities(now, wanted)
        if meant != now:
            changed.append(path)
            files.write(path, f"{meant}\n", files.SECRET, check)
    return changed
