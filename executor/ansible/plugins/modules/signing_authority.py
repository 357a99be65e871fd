#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Keeps the authority that signs certificates in a file of its own."""

from __future__ import annotations

DOCUMENTATION = r"""
module: signing_authority
short_description: Makes ca-signer.crt, with the first certificate of this machine's ca.crt, where it is missing
description:
  - While an authority is replaced, ca.crt holds two certificates, and a controller-manager starts with one alone as its
    C(cluster-signing-cert-file).
  - One that is there stays as it is. The module certificate_authorities and kubeadm's files replace it together with its key.
options: {}
author:
  - Clusterwright developers
"""

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import certificate_places, certificates, files
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text


def work(call) -> dict:
    path, authority = certificate_places.pki("ca-signer"), certificate_places.pki("ca")
    if os.path.exists(path):
        return {"changed": False, "msg": f"{path} is there"}
    signer = certificates.BLOCK.search(text(authority))
    if not signer:
        raise certificates.unreadable(authority, "it has no PEM block CERTIFICATE")
    files.write(path, f"{signer.group(0)}\n", check=call.check_mode)
    return {"changed": True, "msg": f"{path} {'is missing' if call.check_mode else 'was made'}"}
