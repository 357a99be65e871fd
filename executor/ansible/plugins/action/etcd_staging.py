# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Has the executor bring a backup of etcd to the machines that will be restored from it.

The executor's own program does it, on the controller (see plugin_utils/backup_program.py): it has the backup checked, and sends the
snapshot to a machine over the run's SSH connection. C(inspect) and C(report) are done once, for all hosts of the play; C(send) for each.
"""

from __future__ import annotations

import json

from ansible.plugins.action import ActionBase

from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.plugin_utils import backup_program, staging_plan
from ansible_collections.clusterwright.cluster.plugins.plugin_utils.backup_program import failed, registered

ACTS = ("inspect", "send", "report")
REASON = "StagingFailed"
# What the tasks register.
INFO, INSPECTION, MEMBER = "etcd_restore_info", "etcd_staging_inspection", "etcd_stage_probe"


def reported(task_vars: dict, name: str) -> dict:
    """What each host reported in a task, by host; empty of one that did not."""
    results = {host: registered(task_vars, host, name).get("clusterwright") for host in task_vars["ansible_play_hosts_all"]}
    return {host: result if isinstance(result, dict) else {} for host, result in results.items()}


class ActionModule(ActionBase):
    """One of the acts."""

    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset(("act",))
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp=None, task_vars=None) -> dict:
        super().run(tmp, task_vars)
        act = self._task.args.get("act")
        if act not in ACTS:
            return failed("InvalidVariables", f"act is {act!r}, and must be one of {', '.join(ACTS)}")
        first, host = task_vars["ansible_play_hosts_all"][0], task_vars["inventory_hostname"]
        if act != "send" and host != first:
            return {"skipped": True, "changed": False, "msg": f"{first} speaks for all"}
        program = backup_program.path()
        if program is None:
            return failed(
                "InvalidVariables",
                "a backup is brought by the executor, of a run whose inputs name the backup: this run has none",
            )
        try:
            if act == "send":
                return self._send(program, host, task_vars)
            return self._inspect(program, act, task_vars)
        except StepFailure as failure:
            return failed(failure.reason, failure.message)

    def _call(self, program: str, *words: str) -> backup_program.Ended:
        ended = backup_program.call(program, *words)
        for line in ended.before:
            self._display.display(line)
        return ended

    def _inspect(self, program: str, act: str, task_vars: dict) -> dict:
        """The plan for all machines, or what lies ready on them."""
        ended = self._call(program, "inspect")
        result = ended.result(REASON)
        if result.get("failed"):
            return result
        backup, infos = ended.answer.get("backup"), reported(task_vars, INFO)
        if act == "inspect":
            return {**result, "plan": staging_plan.plan(backup, infos)}
        # The program tells the run, past Ansible's results: a machine might forge one.
        agreed = staging_plan.staged(backup, reported(task_vars, MEMBER), infos)
        return self._call(program, "report", json.dumps(agreed)).result(REASON)

    def _send(self, program: str, host: str, task_vars: dict) -> dict:
        """The plan, once the snapshot is on the machine."""
        first = task_vars["ansible_play_hosts_all"][0]
        plan = registered(task_vars, first, INSPECTION).get("plan")
        if not isinstance(plan, dict):
            return failed("InvalidVariables", "the backup was not inspected: the tasks of the role belong together")
        if staging_plan.has_snapshot(reported(task_vars, INFO)[host], plan["sha256"]):
            return {"changed": False, "plan": plan, "msg": "the snapshot is on the machine"}
        if self._task.check_mode:
            return {"skipped": True, "changed": False, "plan": plan, "msg": "the snapshot would be sent"}
        result = self._call(program, "send", host).result(REASON)
        return {**result, "changed": not result.get("failed"), "plan": plan}
