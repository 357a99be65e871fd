# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Writes what Ansible does as one JSON line an event, for the program that runs it.

The stream goes to the file (usually a FIFO) named by CLUSTERWRIGHT_EVENTS; without that variable the plugin does nothing.
Nothing secret passes: results of tasks with no_log carry no text, and of the others only the message, capped.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: events
type: notification
short_description: Writes a JSON line for each playbook, play, task and result
description:
  - Writes to the file named by the environment variable CLUSTERWRIGHT_EVENTS. Does nothing when that is not set.
  - Before each step it waits until a line `go` comes from the FIFO named by CLUSTERWRIGHT_GATE, where that is set.
requirements: []
"""

import json
import os
import re
import time

from ansible.plugins.callback import CallbackBase

MESSAGE_LIMIT = 4096
# What the guard's own words begin with.
GUARD = "clusterwright-guard: "
# What ssh's own words begin with where a machine said too much.
TOO_MUCH = "clusterwright-executor: too much output: "
FINDING_LIMIT = 64 * 1024
# A role's arguments are checked by a task that Ansible adds.
ROLE_ARGUMENTS = "ansible.builtin.validate_argument_spec"
# Messages that say nothing: the error output does.
BARE = ("non-zero return code", "MODULE FAILURE", "Module result deserialization failed")
# What a machine says is not to be trusted: no escape sequences reach a terminal or a status.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def capped(text: object, limit: int = MESSAGE_LIMIT) -> str:
    """The text without control characters, at most `limit` bytes of UTF-8."""
    clean = CONTROL.sub("", str(text)).strip()
    encoded = clean.encode("utf-8", "replace")
    if len(encoded) <= limit:
        return encoded.decode("utf-8", "replace")
    return encoded[: limit - 4].decode("utf-8", "ignore") + " ..."


def cleaned(value: object) -> object:
    """A plain JSON value without control characters: no subclasses of Ansible's, nothing executable."""
    if isinstance(value, dict):
        return {capped(key, 256): cleaned(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [cleaned(item) for item in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return capped(value)


def words_after(mark: str, result: dict) -> str:
    """The line that begins with the mark in what a task says, if there is one: nothing secret, also where the task's own words are."""
    for key in ("module_stderr", "stderr", "msg"):
        _before, found, words = str(result.get(key) or "").partition(mark)
        if found:
            return found + words.partition("\n")[0]
    return ""


def message_of(result: dict, bad: bool) -> str:
    """The sentence a person needs: the module's message, and the error output where that is all there is."""
    message = result.get("msg")
    if isinstance(message, (list, tuple)):
        message = "; ".join(str(part) for part in message)
    message = str(message or "")
    if bad:
        detail = result.get("module_stderr") or result.get("stderr") or result.get("exception") or ""
        if detail and (not message or message.startswith(BARE)):
            message = (message + ": " if message else "") + str(detail)[-MESSAGE_LIMIT // 2:]
    return message


class CallbackModule(CallbackBase):
    """The events of one ansible-playbook process."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "clusterwright.cluster.events"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._out = None
        self._file = None
        self._counts: dict[str, int] = {}
        self._gate = None
        path = os.environ.get("CLUSTERWRIGHT_EVENTS")
        if not path:
            self.disabled = True
            return
        try:
            self._out = open(path, "a", encoding="utf-8", buffering=1)
        except OSError as error:
            self._display.warning(f"failed to open the events file {path}: {error}")
            self.disabled = True
        gate = os.environ.get("CLUSTERWRIGHT_GATE")
        if gate:
            # Not to wait for the other end here; whether it is there shows at the first step.
            self._gate = os.open(gate, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.set_blocking(self._gate, True)

    def _pass_gate(self, file: str) -> None:
        """Waits until the step may begin. When the other end is gone, no further step begins: nobody would hear of it."""
        if self._gate is None:
            return
        self._emit("gate", file=file)
        if os.read(self._gate, 64).strip() != b"go":
            raise KeyboardInterrupt

    def _emit(self, event: str, **fields: object) -> None:
        if self._out is None:
            return
        line = json.dumps({"event": event, "at": time.time(), **fields}, default=str)
        try:
            self._out.write(line + "\n")
        except OSError:
            # The reader is gone; the run goes on, its exit code still tells the outcome.
            self._out = None

    def v2_playbook_on_start(self, playbook) -> None:
        for play in playbook.get_plays():
            if self._hosts(play):
                file = self._source(play)
                tasks = sum(1 for block in play.compile() for _task in self._tasks(block))
                self._counts[file] = self._counts.get(file, 0) + tasks

    def v2_playbook_on_play_start(self, play) -> None:
        file = self._source(play)
        if file != self._file:
            # Not on_playbook_start: a wrapper that imports the steps is one playbook to Ansible, and many to us.
            self._file = file
            parent = os.path.basename(os.path.dirname(file))
            if parent != "probe":
                self._pass_gate(os.path.basename(file))
            self._emit(
                "playbook",
                file=os.path.basename(file),
                dir="probe" if parent == "probe" else "",
                tasks=self._counts.get(file, 0),
            )
        self._emit("play", name=capped(play.get_name(), 256), hosts=self._hosts(play))

    def v2_playbook_on_task_start(self, task, is_conditional) -> None:
        if task.action in ("meta", "ansible.builtin.meta"):
            return
        self._emit("task", name=capped(self._name(task), 256), id=str(task._uuid))

    def v2_runner_on_ok(self, result) -> None:
        self._result(result, "ok")

    def v2_runner_on_failed(self, result, ignore_errors: bool = False) -> None:
        self._result(result, "failed", ignored=bool(ignore_errors))

    def v2_runner_on_unreachable(self, result) -> None:
        self._result(result, "unreachable", ignored=bool(result.task.ignore_unreachable))

    def v2_runner_on_skipped(self, result) -> None:
        self._result(result, "skipped")

    def v2_playbook_on_stats(self, stats) -> None:
        hosts = {}
        for host in sorted(stats.processed):
            summary = stats.summarize(host)
            hosts[str(host)] = {key: summary[key] for key in ("ok", "changed", "failures", "unreachable", "skipped")}
        self._emit("stats", hosts=hosts)

    def _result(self, outcome, status: str, ignored: bool = False) -> None:
        result = dict(outcome.result)
        hidden = bool(outcome.task.no_log or result.get("_ansible_no_log"))
        reason = result.get("reason")
        if result.get("timedout"):
            reason = "TaskTimedOut"
        elif status == "failed" and not reason:
            checked = "InvalidVariables" if outcome.task.action == ROLE_ARGUMENTS else None
            reason = (outcome.task.vars or {}).get("failure_reason", checked)
        # Of its own accord a module fails with a reason, and one that ends badly has its error output.
        crashed = result.get("reason") or result.get("module_stderr")
        finding = result.get("clusterwright")
        if finding is not None:
            finding = cleaned(finding)
            if len(json.dumps(finding, default=str)) > FINDING_LIMIT:
                finding = None
        bad = status in ("failed", "unreachable")
        words = words_after(GUARD, result) if bad else ""
        if bad and not words and words_after(TOO_MUCH, result):
            words = words_after(TOO_MUCH, result).removeprefix(TOO_MUCH)
            reason = "TooMuchOutput"
        item = result.get("item")
        self._emit(
            "result",
            host=str(outcome.host.get_name()),
            task=capped(self._name(outcome.task), 256),
            status=status,
            changed=bool(result.get("changed", False)),
            ignored=ignored,
            msg=capped(words) if words or hidden else capped(message_of(result, bad)),
            reason=capped(reason, 64) if reason else None,
            # A comparison that was made, and not one that could not be: the task itself says no, the module did not fail.
            differs=status == "failed" and bool(result.get("failed_when_result")) and not crashed,
            finding=finding,
            item=None if hidden or item is None else capped(item, 256),
        )

    @staticmethod
    def _name(task) -> str:
        # Without the role in front: which step it is, is told by the playbook.
        return task.name or task.get_name()

    @staticmethod
    def _hosts(play) -> list:
        inventory = play.get_variable_manager()._inventory
        return [str(host) for host in inventory.get_hosts(play.hosts)] if play.hosts else []

    @staticmethod
    def _source(play) -> str:
        # "<path>:<line>"
        return play.get_path().rpartition(":")[0]

    @classmethod
    def _tasks(cls, block):
        for section in (block.block, block.rescue, block.always):
            for entry in section:
                if hasattr(entry, "block"):
                    yield from cls._tasks(entry)
                elif entry.action not in ("meta", "ansible.builtin.meta"):
                    yield entry
