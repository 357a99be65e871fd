#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Brings the keys that Secrets are encrypted with to an API server that does not run yet."""

from __future__ import annotations

DOCUMENTATION = r"""
module: encryption_configuration
short_description: Writes the EncryptionConfiguration of an API server that is to start
description:
  - C(secrets) is its file. Refused where the key that encrypts there is not among those that come.
extends_documentation_fragment:
  - clusterwright.cluster.arguments.files
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils import certificate_places, key_pairs, succession


def work(call) -> dict:
    entries = call.params["files"] + call.params["secrets"]
    succession.check(entries, (certificate_places.ENCRYPTION,))
    written = key_pairs.write(entries, call.check_mode)
    return {"changed": bool(written), "msg": f"written: {', '.join(written)}" if written else "all was so"}
