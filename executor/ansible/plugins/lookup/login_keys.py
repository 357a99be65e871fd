# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The public keys of those with which ssh may have logged in to a machine."""

from __future__ import annotations

DOCUMENTATION = r"""
name: login_keys
short_description: Public keys of the identity files that ssh has for a machine, without their types and comments
description:
  - Keys that only an agent holds, and those behind a passphrase, are not among them.
options:
  _terms:
    description: The machine's address, the arguments that ssh gets for it, and the path of its private key. Each may be empty.
    required: true
author:
  - Clusterwright developers
"""
RETURN = r"""
_raw:
  description: The keys, in base64.
  type: list
  elements: str
"""

from ansible.plugins.lookup import LookupBase

from ansible_collections.clusterwright.cluster.plugins.plugin_utils.login_keys import login_keys


class LookupModule(LookupBase):
    """The plugin."""

    def run(self, terms, variables=None, **kwargs):
        """Keys for the terms (address, arguments, path)."""
        return login_keys(*map(str, terms))
