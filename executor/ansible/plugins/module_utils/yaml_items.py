# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Items of lists in the YAML that kubeadm writes: found, taken out and added, the rest of the text stays character by character."""

from __future__ import annotations

import json
import re

# What YAML reads as a text, as it stands.
PLAIN = re.compile(r"(?:--)?[A-Za-z/][A-Za-z0-9_./,=@%+:-]*(?<!:)")
# What it would take for something else.
WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n", "~"}
FIELD = re.compile(r"([\w.-]+):(?: +(.*))?")


def split(text: str, indent: int) -> list:
    """The items of a list that stand this deep, each with its lines."""
    found: list = []
    for line in text.splitlines(keepends=True):
        if line.startswith(f"{' ' * indent}- ") or not found:
            found.append("")
        found[-1] += line
    return found


def unquoted(text: str) -> str:
    """The scalar that is written so."""
    text = text.strip()
    if text.startswith('"'):
        try:
            return str(json.loads(text))
        except ValueError:
            return text
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text


def quoted(value: str) -> str:
    """The scalar, written so that it is read as this text."""
    return value if PLAIN.fullmatch(value) and value.lower() not in WORDS else json.dumps(value)


def fields(item: str) -> dict:
    """The scalars of an item, at whatever depth, by their keys; those of a mapping in braces as well."""
    text = item.strip().removeprefix("- ")
    if text.startswith("{"):
        try:
            return {str(key): value if isinstance(value, str) else json.dumps(value) for key, value in json.loads(text).items()}
        except ValueError:
            return {}
    matches = (FIELD.fullmatch(line.strip()) for line in text.splitlines())
    return {found.group(1): unquoted(found.group(2)) for found in matches if found and found.group(2)}


def item(values: dict, indent: int) -> str:
    """An item with these keys and values; a value may be a mapping. Booleans are written as such."""
    return "".join(lines(values, indent + 2)).replace(" " * (indent + 2), f"{' ' * indent}- ", 1)


def lines(values: dict, indent: int) -> list:
    found = []
    for key, value in values.items():
        if isinstance(value, dict):
            found += [f"{' ' * indent}{key}:\n", *lines(value, indent + 2)]
        else:
            found.append(f"{' ' * indent}{key}: {json.dumps(value) if isinstance(value, bool) else quoted(value)}\n")
    return found


def same(some: list, others: list) -> bool:
    """Whether these are the same items, whatever their order and that of their keys."""
    described = [sorted(str(sorted(fields(entry).items())) for entry in entries) for entries in (some, others)]
    return described[0] == described[1]
