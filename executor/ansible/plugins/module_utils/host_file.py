# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Our lines in /etc/hosts."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, marked_lines

PATH = "/etc/hosts"


def set_lines(lines: list, check: bool = False) -> bool:
    """Makes our part of the file hold exactly these lines; none removes it. True when it did not."""
    content = files.read(PATH)
    text = marked_lines.with_lines(content, lines)
    if text.rstrip("\n") == content.rstrip("\n"):
        return False
    if not check:
        files.replace_foreign(PATH, text)
    return True
