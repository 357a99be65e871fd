# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""How our modules fail and end: with a reason that a program can act on and a message that says what to do."""

from __future__ import annotations

import re

# A bootstrap token, wherever a program prints it.
TOKEN = re.compile(r"\b([a-z0-9]{6})\.[a-z0-9]{16}\b")
MESSAGE_LIMIT = 3500


class StepFailure(Exception):
    """Something a person will meet: `reason` in CamelCase, `message` with the name of what failed and the way out."""

    def __init__(self, reason: str, message: str, **extra: object) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.extra = extra


def redacted(text: str) -> str:
    """The text without bootstrap tokens, its end kept when it is long: the end is where programs say why."""
    text = TOKEN.sub(r"\1.<hidden>", text).strip()
    return text if len(text) <= MESSAGE_LIMIT else "... " + text[-MESSAGE_LIMIT:]
