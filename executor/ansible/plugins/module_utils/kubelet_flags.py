# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The kubelet's flags as kubeadm wrote them when the machine joined. A kubelet does not start with a flag that it does not know, and
kubeadm removes one only in the release that follows: not from a machine that leaves that release out."""

from __future__ import annotations

import re

from ansible_collections.clusterwright.cluster.plugins.module_utils.versions import rank

FILE = "/var/lib/kubelet/kubeadm-flags.env"
# Flags of kubeadm's, by the first version of the kubelet that does not know them.
GONE = {"pod-infra-container-image": "1.35.0"}


def known(text: str, version: str) -> str:
    """The file's text without the flags that a kubelet of this version does not know."""
    for flag, since in GONE.items():
        if rank(version)[0] >= rank(since)[0]:
            text = re.sub(rf'(?:(?<=")--{flag}=[^\s"]*[ ]?|[ ]--{flag}=[^\s"]*)', "", text)
    return text
