# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The executor's own program beside the FIFO of events, which moves snapshots of etcd: nothing of one passes through Ansible, and no
key of the storage does.

What it says is its last line: JSON with `message`, and `reason` where it failed. It ends when its standard input does, so it does not
outlive the task that calls it.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

PROGRAM = "etcd-backup"
# To abort a transfer.
GRACE_SECONDS = 30
OUTPUT_LIMIT = 64 * 1024


class Ended:
    """How a call of the program ended: its exit code, its last line as an object (none: it said no result), and all it said."""

    def __init__(self, code: int, said: str) -> None:
        lines = said.strip().splitlines() or [""]
        self.code = code
        self.before = lines[:-1]
        self.last = lines[-1]
        try:
            answer = json.loads(self.last)
        except ValueError:
            answer = None
        self.answer = answer if isinstance(answer, dict) else None

    def result(self, reason: str) -> dict:
        """The task's result; `reason` is that of a failure which has none of its own."""
        if self.answer is None:
            return failed(reason, f"{PROGRAM} ended with code {self.code} and no result: {self.last[-500:]}")
        message = str(self.answer.get("message") or "")
        if self.code != 0:
            return failed(str(self.answer.get("reason") or reason), message)
        return {"changed": False, "msg": message}


def failed(reason: str, message: str) -> dict:
    return {"failed": True, "changed": False, "reason": reason, "msg": message}


def path() -> str | None:
    """Where the program is; none in a run whose inputs have no backup, and where playbooks are played by hand."""
    events = os.environ.get("CLUSTERWRIGHT_EVENTS")
    program = pathlib.Path(events).with_name(PROGRAM) if events else None
    return str(program) if program is not None and program.exists() else None


def call(program: str, *words: str) -> Ended:
    """Runs the program. Its standard input is open for as long as this works."""
    process = subprocess.Popen(
        [program, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # A signal to Ansible is not its own: it is to end its transfer in good order.
        start_new_session=True,
    )
    said = b""
    try:
        while piece := process.stdout.read1(OUTPUT_LIMIT):
            said = (said + piece)[-OUTPUT_LIMIT:]
        return Ended(process.wait(), said.decode("utf-8", "replace"))
    finally:
        process.stdin.close()
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def registered(task_vars: dict, host: str, name: str) -> dict:
    """What a task registered on a host, not templated: a machine's own words may be in it."""
    result = task_vars["hostvars"].raw_get(host).get(name)
    return result if isinstance(result, dict) else {}
