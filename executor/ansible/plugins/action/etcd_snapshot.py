# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Has the executor stream a snapshot of one member of etcd into the backup's storage, or verify there that it is whole.

The executor's own program does it, on the controller, and reads the member over the run's SSH connection to its host (see
plugin_utils/backup_program.py).
"""

from __future__ import annotations

from ansible.plugins.action import ActionBase

from ansible_collections.clusterwright.cluster.plugins.module_utils.backup_member import choose
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.plugin_utils import backup_program
from ansible_collections.clusterwright.cluster.plugins.plugin_utils.backup_program import failed, registered


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
        program = backup_program.path()
        if program is None:
            return failed(
                "InvalidVariables",
                "a backup is made by the executor, of a run whose inputs have a backup: this run has none",
            )
        if self._task.check_mode and not verify:
            return {"skipped": True, "changed": False, "msg": f"the member of {chosen} would be read"}
        ended = backup_program.call(program, "verify" if verify else "take", chosen)
        for line in ended.before:
            self._display.display(line)
        result = ended.result("BackupFailed")
        return {**result, "changed": not verify and not result.get("failed")}
