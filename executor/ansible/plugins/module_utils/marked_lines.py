# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Our lines in a file of others, between two marks."""

from __future__ import annotations

BEGIN = "# clusterwright: begin"
END = "# clusterwright: end"


def parted(content: str) -> tuple:
    """The lines that are not ours, and those that are, without the marks."""
    kept: list = []
    ours: list = []
    here = kept
    for line in content.splitlines():
        if line.strip() in (BEGIN, END):
            here = ours if line.strip() == BEGIN else kept
        else:
            here.append(line)
    return kept, ours


def with_lines(content: str, lines: list) -> str:
    """The content with exactly these lines as ours, at its end; none: without the marks, too."""
    kept, _ours = parted(content)
    return "\n".join(kept + ([BEGIN, *lines, END] if lines else [])) + "\n"
