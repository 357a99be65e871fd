# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Runs a module's `work` on the machine and prints its result, or its failure, as the one line that the action reads."""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback

from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure, redacted


class Call:
    """What a module is asked: its parameters, and whether it may only tell what it would change."""

    def __init__(self, params: dict, check_mode: bool) -> None:
        self.params = params
        self.check_mode = check_mode


def failed(reason: str, message: str, **extra: object) -> dict:
    return {"failed": True, "reason": reason, "msg": redacted(message), **extra}


def result_of(call: dict) -> dict:
    module = importlib.import_module(call["module"])
    try:
        return module.work(Call(call["params"], call["check_mode"]))
    except StepFailure as failure:
        return failed(failure.reason, failure.message, **failure.extra)
    except OSError as error:
        return failed("MachineError", f"the machine refused: {error}")
    except Exception:  # pylint: disable=broad-except
        # A mistake of ours: where it happened is what a developer needs.
        return failed("InternalError", traceback.format_exc(limit=-4))


def conclude(call: dict) -> None:
    """Runs the call and prints its result."""
    os.umask(0o022)
    sys.stdout.write(json.dumps({"clusterwright_result": result_of(call)}) + "\n")
