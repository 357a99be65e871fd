# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The certificate that the kubelet shows to the API server. The kubelet renews it by its age alone, by an authority that signs then: of
another authority it gets one here, in the place and under the names that it gives itself."""

from __future__ import annotations

import os
import re
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, certificate_places, files, issuers
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

FOLDER = certificate_places.KUBELET_PKI
CURRENT = f"{FOLDER}/kubelet-client-current.pem"
# A link of the kubelet's own that was cut off; it makes it anew.
UPDATED = f"{FOLDER}/kubelet-client-updated.pem"
# The first line of one that the kubelet has not made itself, and so does not know before its next start.
MARK = "# Written by clusterwright.\n"
FIELDS = re.compile(r"^(\s*client-(?:certificate|key))(?:-data)?:.*$", re.MULTILINE)


def is_foreign() -> bool:
    """Whether the one in use was not signed by the authority that signs now."""
    return not issuers.is_from(api.client_pair(text(api.KUBELET)), text(certificate_places.pki("ca")))


def write(pair: str) -> None:
    """Makes the pair, PEM, the kubelet's. The link is renamed into its place: a kubelet that starts meanwhile finds one of both."""
    path = f"{FOLDER}/kubelet-client-{time.strftime('%Y-%m-%d-%H-%M-%S')}.pem"
    files.write(path, f"{MARK}{pair.strip()}\n", files.SECRET)
    files.remove(UPDATED)
    os.symlink(path, UPDATED)
    os.replace(UPDATED, CURRENT)


def refer() -> None:
    """Has kubelet.conf name the pair's place. One that holds a pair itself would be used instead."""
    now = text(api.KUBELET)
    files.write(api.KUBELET, FIELDS.sub(rf"\g<1>: {CURRENT}", now) + "\n", files.SECRET)


def reads() -> list:
    """The file with the pair, if the kubelet reads it at its start alone."""
    return [os.path.realpath(CURRENT)] if text(CURRENT).startswith(MARK.strip()) else []
