# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Our lines in /etc/hosts, between two marks."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils import files
from ansible_collections.clusterwright.cluster.plugins.module_utils.leftovers import HOSTS_BEGIN, HOSTS_END

PATH = "/etc/hosts"


def others(content: str) -> list:
    """The lines that are not ours."""
    kept, ours = [], False
    for line in content.splitlines():
        if line.strip() == HOSTS_BEGIN:
            ours = True
        elif line.strip() == HOSTS_END:
            ours = False
        elif not ours:
            kept.append(line)
    return kept


def set_lines(lines: list, check: bool = False) -> bool:
    """Makes our part of the file hold exactly these lines; none removes it. True when it did not."""
    try:
        with open(PATH, encoding="utf-8") as source:
            content = source.read()
    except FileNotFoundError:
        content = ""
    wanted = others(content)
    if lines:
        wanted += [HOSTS_BEGIN, *lines, HOSTS_END]
    text = "\n".join(wanted) + "\n"
    if text.rstrip("\n") == content.rstrip("\n"):
        return False
    if not check:
        files.replace_foreign(PATH, text)
    return True
