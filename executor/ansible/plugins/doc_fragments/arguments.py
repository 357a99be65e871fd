# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Shows ansible-doc the options that modules share. Nothing else reads this."""

from __future__ import annotations

import json

from ansible_collections.clusterwright.cluster.plugins.module_utils.arguments import GROUPS


class ModuleDocFragment:
    """Has an attribute for each group; JSON is YAML, too."""


for group, options in GROUPS.items():
    setattr(ModuleDocFragment, group.upper(), json.dumps({"options": options}))
