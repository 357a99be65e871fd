# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The keys in an EncryptionConfiguration of an API server."""

from __future__ import annotations

import json


def in_text(content: str) -> list:
    """(name, secret) of each, the one that encrypts first. A text that is none has none."""
    try:
        found = json.loads(content)
        providers = [provider for entry in found["resources"] for provider in entry["providers"]]
        keys = [key for provider in providers for key in provider.get("secretbox", {}).get("keys", [])]
        return [(key["name"], key["secret"]) for key in keys]
    except (AttributeError, KeyError, TypeError, ValueError):
        return []
