# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Reads the kubeconfig of a cluster's administrator, from the first of `files` that is there, into the executor's private directory.

What is in it is in no result of the task, so no callback, log or status has it: the executor takes it from the directory, which it has
made where its run may keep what is read. The machine needs no Python for it, and is left as it is.
"""

from __future__ import annotations

import base64
import binascii
import os
import pathlib
import shlex

from ansible.plugins.action import ActionBase

# In the directory with the FIFO of events.
DIRECTORY = "kubeconfigs"
LIMIT = 256 * 1024
BEGUN = "clusterwright-kubeconfig"
NOT_FOUND = 3
# Exit codes pass through sudo and ssh as they are.
SCRIPT = (
    "for f in {files}; do if [ -e \"$f\" ]; then "
    "c=$(head -c {most} \"$f\" | base64) && [ -n \"$c\" ] && echo {begun} \"$f\" && echo \"$c\" && exit 0; "
    "echo \"$f cannot be read\" >&2; exit 1; fi; done; exit {not_found}"
)


def script(files: list) -> str:
    """Says the first of these files that is there, and its content in base64."""
    words = " ".join(shlex.quote(file) for file in files)
    return SCRIPT.format(files=words, most=LIMIT + 1, begun=BEGUN, not_found=NOT_FOUND)


def understood(said: str, files: list) -> tuple:
    """The file, and its content; ValueError: the machine did not say them. What it said is in no message."""
    _before, begun, rest = said.partition(f"{BEGUN} ")
    if not begun:
        raise ValueError("the machine has not said which file it is")
    path, _end, content = rest.partition("\n")
    if path.strip() not in files:
        raise ValueError("the machine has said another file than those that it was asked for")
    try:
        return path.strip(), base64.b64decode("".join(content.split()), validate=True)
    except binascii.Error:
        raise ValueError("the machine has said something else beside the file") from None


def failed(reason: str, message: str) -> dict:
    return {"failed": True, "changed": False, "reason": reason, "msg": message}


def directory() -> pathlib.Path | None:
    """Where it is put; none in a run that may keep nothing, and where playbooks are played by hand."""
    events = os.environ.get("CLUSTERWRIGHT_EVENTS")
    place = pathlib.Path(events).with_name(DIRECTORY) if events else None
    return place if place is not None and place.is_dir() else None


class ActionModule(ActionBase):
    """On each host of the run."""

    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset(("files",))
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp=None, task_vars=None) -> dict:
        super().run(tmp, task_vars)
        place = directory()
        if place is None:
            return failed("InvalidVariables", "a kubeconfig is read by the executor alone, in a PlaybookRun that may keep it")
        files = [str(file) for file in self._task.args["files"]]
        answer = self._low_level_execute_command(f"/bin/sh -c {shlex.quote(script(files))}", sudoable=True)
        if answer.get("rc") == NOT_FOUND:
            return failed(
                "KubeconfigNotFound",
                f"no kubeconfig of an administrator is on the machine, at none of {', '.join(files)};"
                " name a Host that is a control plane, or put the kubeconfig into a Secret (kubeConfigSecretName)",
            )
        if answer.get("rc") != 0:
            said = (answer.get("stderr") or "").strip()[-500:]
            return failed("MachineError", f"the kubeconfig was not read: {said or 'the machine said nothing'}")
        try:
            path, content = understood(answer.get("stdout") or "", files)
        except ValueError as error:
            return failed("MachineError", f"the kubeconfig was not read: {error}")
        if len(content) > LIMIT:
            return failed("KubeconfigRejected", f"{path} has more than {LIMIT} bytes: it is no kubeconfig")
        file = place / task_vars["inventory_hostname"]
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
            opened.write(content)
        return {"changed": False, "msg": f"read {path}"}
