#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Reports when this machine's certificates end."""

from __future__ import annotations

DOCUMENTATION = r"""
module: certificates_info
short_description: Reports when the certificates of this machine end, as they are served; read-only
description:
  - What the API server and etcd's member serve, and what is in the files of clients and authorities and in kubeconfigs.
  - One whose file holds another certificate than is served is outdated, and so is a kubeconfig that is newer than the process that
    reads it at its start.
extends_documentation_fragment:
  - clusterwright.cluster.arguments.apiserver
author:
  - Clusterwright developers
"""

import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import certificate_places


def work(call) -> dict:
    found = certificate_places.seen(call.params["address"], call.params["port"])
    ended = [told["name"] for told in found if told["expiresAt"] <= time.time()]
    said = f"ended: {', '.join(ended)}" if ended else f"{len(found)} certificates, none has ended"
    return {"changed": False, "clusterwright": {"kind": "certificates", "certificates": found}, "msg": said}
