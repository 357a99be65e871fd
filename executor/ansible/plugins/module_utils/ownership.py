# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Whether applying would change what is ours of an object: fields that others took over since (an autoscaler the replicas) are
theirs, and no difference of ours."""

from __future__ import annotations

import json

MANAGER = "clusterwright"
MISSING = object()


def paths(fields: dict, prefix: tuple = ()) -> set:
    """The leaves of a `fieldsV1`, each as the tuple of its keys."""
    found = set()
    for key, below in fields.items():
        here = prefix if key == "." else (*prefix, key)
        found |= paths(below, here) if below else {here}
    return found


def entries(thing: dict) -> list:
    return thing.get("metadata", {}).get("managedFields") or []


def is_ours(entry: dict) -> bool:
    return entry.get("manager") == MANAGER and entry.get("operation") == "Apply" and not entry.get("subresource")


def owned(thing: dict) -> set:
    """The fields that we own."""
    return {path for entry in entries(thing) if is_ours(entry) for path in paths(entry.get("fieldsV1") or {})}


def owned_by_others(thing: dict) -> set:
    return {path for entry in entries(thing) if not is_ours(entry) for path in paths(entry.get("fieldsV1") or {})}


def value_at(thing: object, path: tuple) -> object:
    """What is at the path; MISSING where nothing is."""
    for key in path:
        kind, _colon, rest = key.partition(":")
        if kind == "f" and isinstance(thing, dict):
            thing = thing.get(rest, MISSING)
        elif kind == "k" and isinstance(thing, list):
            wanted = json.loads(rest).items()
            thing = next((item for item in thing if isinstance(item, dict) and wanted <= item.items()), MISSING)
        elif kind == "v" and isinstance(thing, list):
            value = json.loads(rest)
            thing = value if value in thing else MISSING
        else:
            return MISSING
    return thing


def would_change(live: dict, applied: dict) -> bool:
    """Whether the dry run of our apply (`applied`) differs from the object (`live`) in what is ours."""
    before, after, others = owned(live), owned(applied), owned_by_others(live)
    if before - after:
        return True
    new = after - before
    if any(path not in others for path in new):
        return True
    return any(value_at(live, path) != value_at(applied, path) for path in before & after)
