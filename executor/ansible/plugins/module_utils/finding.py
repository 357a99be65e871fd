# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""One thing that stands against an installation: an error blocks, a warning does not."""

from __future__ import annotations


def error(name: str, message: str) -> dict:
    return {"name": name, "severity": "error", "message": message}


def warning(name: str, message: str) -> dict:
    return {"name": name, "severity": "warning", "message": message}
