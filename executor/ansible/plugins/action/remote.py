# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Runs the collection's modules on a machine in one exchange.

Ansible's own wrapper builds 600 KB for each module and the machine compiles most of ansible.module_utils again for each task:
together some 0.4 s of CPU. Our modules need only the standard library, so this sends their source (about 50 KB) to one
`python3`, over the connection's standard input: nothing is written on the machine, and secrets are in no argument and no file.

meta/runtime.yml routes the action of each module here. The options are those of the module's DOCUMENTATION, with the
groups of module_utils/arguments.py that it names, checked on this side.
"""

from __future__ import annotations

import base64
import json
import math
import pathlib
import shlex
import zlib

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.parsing.plugin_docs import read_docstring
from ansible.plugins.action import ActionBase

from ansible_collections.clusterwright.cluster.plugins.module_utils.arguments import GROUPS

PLUGINS = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = "ansible_collections.clusterwright.cluster.plugins"
SPEC_KEYS = ("type", "required", "default", "choices", "elements")
# What our modules answer. Everything else that a machine says is dropped: Ansible obeys keys such as `add_host`, with which one
# machine could become another, or this controller.
RESULT_KEYS = frozenset(
    "changed failed msg reason clusterwright installed versions imported differences files_changed written objects nodes ran due".split()
)
# Facts that roles read.
FACTS = "clusterwright_machine"
RESULT_LIMIT = 4 * 1024 * 1024
DEPTH_LIMIT = 16

# The program that the machine's Python reads. It makes modules from the sources given, and runs `work` of one.
PROGRAM = """\
import base64, importlib.abc, importlib.util, json, sys, zlib
call = json.loads(zlib.decompress(base64.b64decode({data!r})))
class Sources(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def find_spec(self, name, path=None, target=None):
        if name in call["sources"]:
            return importlib.util.spec_from_loader(name, self, is_package=not call["sources"][name])
    def get_source(self, name):
        return call["sources"][name]
sys.meta_path.insert(0, Sources())
from {package}.module_utils.outcome import conclude
conclude(call)
"""


def specification(options: dict) -> dict:
    """The argument spec of options as they are documented."""
    spec = {}
    for name, option in options.items():
        spec[name] = {key: option[key] for key in SPEC_KEYS if key in option}
        if option.get("suboptions"):
            spec[name]["options"] = specification(option["suboptions"])
    return spec


def options_of(module: str) -> dict:
    """A module's options as it documents them: those that it shares with others, and its own."""
    documentation = read_docstring(str(PLUGINS / "modules" / f"{module}.py"))["doc"]
    options = {}
    for fragment in documentation.get("extends_documentation_fragment") or []:
        options.update(GROUPS[fragment.rpartition(".")[2]])
    options.update(documentation.get("options") or {})
    return options


def sources(module: str) -> dict:
    """Sources by module name: the module, all module_utils, and the (empty) packages above them."""
    found = {}
    parts = PACKAGE.split(".")
    for number in range(len(parts)):
        found[".".join(parts[: number + 1])] = ""
    for folder in ("module_utils", "modules"):
        found[f"{PACKAGE}.{folder}"] = ""
    for path in (PLUGINS / "module_utils").glob("*.py"):
        found[f"{PACKAGE}.module_utils.{path.stem}"] = path.read_text(encoding="utf-8")
    found[f"{PACKAGE}.modules.{module}"] = (PLUGINS / "modules" / f"{module}.py").read_text(encoding="utf-8")
    return found


def plain(value: object, depth: int = 0) -> object:
    """The value, if it is one that every reader of JSON understands; else ValueError."""
    if depth > DEPTH_LIMIT:
        raise ValueError("too deep")
    if isinstance(value, dict):
        return {key: plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("no number")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("too large")
    return value


def understood(line: str) -> dict:
    """The result in a line that a machine said; ValueError when it is none."""
    if len(line) > RESULT_LIMIT:
        raise ValueError("too long")
    said = plain(json.loads(line)["clusterwright_result"])
    if not isinstance(said, dict):
        raise ValueError("no object")
    result = {key: said[key] for key in RESULT_KEYS & said.keys()}
    result["changed"] = bool(said.get("changed"))
    result["failed"] = bool(said.get("failed"))
    for key in ("msg", "reason"):
        if key in result:
            result[key] = str(result[key])
    facts = said.get("ansible_facts")
    machine = facts.get(FACTS) if isinstance(facts, dict) else None
    if isinstance(machine, dict):
        result["ansible_facts"] = {FACTS: machine}
    return result


class ActionModule(ActionBase):
    """The action of every module of the collection."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp=None, task_vars=None) -> dict:
        super().run(tmp, task_vars)
        task_vars = task_vars or {}
        module = self._task.action.rpartition(".")[2]
        checked = ArgumentSpecValidator(specification(options_of(module))).validate(self._task.args)
        if checked.error_messages:
            raise AnsibleActionFail(
                f"{module}: {'; '.join(checked.error_messages)}", result={"reason": "InvalidVariables"}
            )
        call = {
            "module": f"{PACKAGE}.modules.{module}",
            "outcome": f"{PACKAGE}.module_utils.outcome",
            "sources": sources(module),
            "params": checked.validated_parameters,
            "check_mode": bool(self._task.check_mode),
        }
        data = base64.b64encode(zlib.compress(json.dumps(call, default=str).encode("utf-8"))).decode("ascii")
        program = PROGRAM.format(data=data, package=PACKAGE)
        interpreter = task_vars.get("ansible_python_interpreter") or "/usr/bin/python3"
        answer = self._low_level_execute_command(
            f"{shlex.quote(str(interpreter))} -I -S -", in_data=program.encode("utf-8"), sudoable=True
        )
        return self._understood(module, answer)

    @staticmethod
    def _understood(module: str, answer: dict) -> dict:
        """The module's result: the last line of what the machine said that is one."""
        for line in reversed((answer.get("stdout") or "").splitlines()):
            if line.startswith('{"clusterwright_result":'):
                try:
                    return understood(line)
                except (ValueError, RecursionError):
                    break
        said = (answer.get("stderr") or answer.get("stdout") or "").strip()[-2000:]
        return {
            "failed": True,
            "reason": "MachineError",
            "msg": f"module {module} ended with code {answer.get('rc')} and no result on the machine: {said}",
        }
