# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What API servers encrypt with, of the lines that a run has."""

from __future__ import annotations

DOCUMENTATION = r"""
name: encryption
short_description: The EncryptionConfiguration that the lines of a run's pki.encryption.key make, and the KMS plug-ins that it names
description:
  - A list of C(configuration), JSON, and C(plugins), a list of C(name), C(endpoint) and C(timeoutSeconds). Lines that cannot be read fail, and
    nothing of them is shown.
options:
  _terms:
    description: The lines. The first one encrypts, a second one decrypts beside it.
    required: true
author:
  - Clusterwright developers
"""
RETURN = r"""
_raw:
  description: One dictionary.
  type: list
  elements: dict
"""

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ansible_collections.clusterwright.cluster.plugins.plugin_utils import encryption_lines


class LookupModule(LookupBase):
    """The plugin."""

    def run(self, terms, variables=None, **kwargs):
        """One {configuration, plugins} of the lines."""
        text = str(terms[0])
        try:
            found = {"configuration": encryption_lines.configuration(text), "plugins": encryption_lines.plugins(text)}
        except (KeyError, TypeError, ValueError):
            raise AnsibleLookupError("pki.encryption.key has a line that is no key and says no resources and provider") from None
        return [found]
