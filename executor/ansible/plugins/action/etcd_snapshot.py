# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Has the executor stream a snapshot of one member of etcd into the backup's storage, or verify there that it is whole.

The executor's own program beside the FIFO of events does it, on the controller: nothing of a snapshot passes through Ansible, and
no key of the storage does. It reads the member over the run's SSH connection to its host. What it says is its last line: JSON with
`message`, and `reason` where it failed. It ends when its standard input does, so it does not outlive this task.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

from ansible.plugins.action import ActionBase

from ansible_collections.clusterwright.cluster.plugins.module_utils.backup_member import choose
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

PROGRAM = "etcd-backup"
# To abort an upload.
GRACE_SECONDS = 30
OUTPUT_LIMIT = 64 * 1024


def registered(task_vars: dict, host: str, name: str) -> dict:
    """What a task registered on a host, not templated: a machine's own words may be in it."""
    result = task_vars["hostvars"].raw_get(host).get(name)
    return result if isinstance(result, dict) else {}


def member_to_read(task_vars: dict) -> str:
    """The host whose member is read."""
    reports = {}
    for host in task_vars["ansible_play_hosts_all"]:
        result = registered(task_vars, host, "etcd_backup_candidate")
        # One that failed, or was not reached, says why in its message.
        reports[host] = result.get("clusterwright") or {"message": result.get("msg")}
    return choose(reports)


def member_to_verify(task_vars: dict) -> str:
    """The host whose member was read, none if that failed; where this is played alone, any one speaks for the storage."""
    results = {host: registered(task_vars, host, "etcd_backup_snapshot") for host in task_vars["ansible_play_hosts_all"]}
    if any(results.values()):
        return next((host for host, result in results.items() if result.get("changed")), "")
    return task_vars["ansible_play_hosts"][0]


def ended(program: str, *arguments: str) -> tuple:
    """The program's exit code, and the end of what it said. Its standard input is open for as long as this works."""
    process = subprocess.Popen(
        [program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # A signal to Ansible is not its own: it is to end its upload in good order.
        start_new_session=True,
    )
    said = b""
    try:
        while piece := process.stdout.read1(OUTPUT_LIMIT):
            said = (said + piece)[-OUTPUT_LIMIT:]
        return process.wait(), said.decode("utf-8", "replace")
    finally:
        process.stdin.close()
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def result_of(code: int, said: str) -> dict:
    """The task's result, by the program's exit code and its last line."""
    last = (said.strip().splitlines() or [""])[-1]
    try:
        answer = json.loads(last)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        return failed("BackupFailed", f"{PROGRAM} ended with code {code} and no result: {last[-500:]}")
    message = str(answer.get("message") or "")
    if code != 0:
        return failed(str(answer.get("reason") or "BackupFailed"), message)
    return {"changed": False, "msg": message}


def failed(reason: str, message: str) -> dict:
    return {"failed": True, "changed": False, "reason": reason, "msg": message}


class ActionModule(ActionBase):
    """On the host whose member it is; the others are skipped."""

    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset(("verify",))
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp=None, task_vars=None) -> dict:
        super().run(tmp, task_vars)
        verify = bool(self._task.args.get("verify"))
        try:
            chosen = member_to_verify(task_vars) if verify else member_to_read(task_vars)
        except StepFailure as failure:
            return failed(failure.reason, failure.message)
        if chosen != task_vars["inventory_hostname"]:
            return {"skipped": True, "changed": False, "msg": f"the member of {chosen or 'nobody'} is read"}
        events = os.environ.get("CLUSTERWRIGHT_EVENTS")
        program = pathlib.Path(events or "").with_name(PROGRAM) if events else None
        if program is None or not program.exists():
            return failed(
                "InvalidVariables",
                "a backup is made by the executor, of a run whose inputs have a backup: this run has none",
            )
        if self._task.check_mode and not verify:
            return {"skipped": True, "changed": False, "msg": f"the member of {chosen} would be read"}
        code, said = ended(str(program), "verify" if verify else "take", chosen)
        for line in said.strip().splitlines()[:-1]:
            self._display.display(line)
        result = result_of(code, said)
        return {**result, "changed": not verify and not result.get("failed")}
