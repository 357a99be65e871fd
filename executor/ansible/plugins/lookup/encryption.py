# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What API servers encrypt with, of the lines that a run has."""

from __future__ import annotations

DOCUMENTATION = r"""
name: encryption
short_description: The EncryptionConfiguration that the lines of a run's pki.encryption.key make, and the KMS plug-ins that it names
description:
  - A list of C(configuration), JSON, C(plugins), a list of C(name), C(endpoint) and C(timeoutSeconds), and C(volumes), the directories of their
    sockets as an API server has them mounted. Lines that cannot be read fail, and nothing of them is shown.
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

from ansible_collections.clusterwright.cluster.plugins.module_utils import encryption_mounts
from ansible_collections.clusterwright.cluster.plugins.plugin_utils import encryption_lines


class LookupModule(LookupBase):
    """The plugin."""

    def run(self, terms, variables=None, **kwargs):
        """One {configuration, plugins, volumes} of the lines."""
        text = str(terms[0])
        try:
            plugins = encryption_lines.plugins(text)
            volumes = encryption_mounts.volumes_of(plugin["endpoint"] for plugin in plugins)
            found = {"configuration": encryption_lines.configuration(text), "plugins": plugins, "volumes": volumes}
        except (KeyError, TypeError, ValueError):
            raise AnsibleLookupError("pki.encryption.key has a line that is no key and says no resources and provider") from None
        return [found]
