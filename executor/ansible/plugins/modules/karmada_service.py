#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Components of a Karmada control plane as services of this machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: karmada_service
short_description: Components of a Karmada control plane as systemd units with their files, each waited for until it is healthy
description:
  - The services are brought in their order, and none before those ahead of it are healthy. One that does not get well fails with
    ServiceFailed and the end of its journal; those ahead of it stay, and are reported.
  - Files come into the service's own directory, for root and the group of its user alone; others that are there go.
  - A unit says at its head what it is made of, the digest. It is restarted where it runs with anything else than what is on disk.
  - The estimators of members come last, all of them together. Those that are wanted no more go before others come, since one may have the
    port of another; those that are as they are wanted are left alone. None of them is waited for, since what an estimator looks at is its
    member, which may be away.
  - In check mode the files are compared by their names alone, if no content is given, and each service must answer.
options:
  services:
    description: The services.
    type: list
    elements: dict
    required: true
    suboptions: &service
      name:
        description: What messages call it.
        type: str
        required: true
      unit:
        description: Its unit, clusterwright-karmada-NAME.service.
        type: str
        required: true
      state:
        description:
          - C(started) - it runs. C(stopped) - it has its unit and files, and neither runs nor comes back with a boot. C(absent) - neither
            unit nor files are there.
        type: str
        choices: [started, stopped, absent]
        default: started
      program:
        description: Its program, which the step karmada-programs put there. Not for C(absent).
        type: path
        default: ""
      exec_start:
        description: Program and arguments, as systemd reads them. Not for C(absent).
        type: str
        default: ""
      digest:
        description: What it is made of. Not for C(absent).
        type: str
        default: ""
      directory:
        description: Directory of its files, below /etc/karmada.
        type: path
        required: true
      files:
        description: Its files in the directory, by their names - which of C(secrets) each is.
        type: dict
        default: {}
      health:
        description:
          - Where it says how it is, C(url). C(authority) - the file with the authority that its certificate is from; empty - any is taken.
            C(client) - C(certificate) and C(key), files of the one who asks. C(opens) - a port of this machine at which it must listen as
            well. Not for C(absent).
        type: dict
        default: {}
  estimators:
    description: The estimators of members. Absent - those that are here are left alone; empty - they go.
    type: list
    elements: dict
    suboptions: *service
  estimators_digest:
    description: What all of them together are made of. Empty - there are none.
    type: str
    default: ""
  secrets:
    description: The content of all files, which must not show anywhere. Empty in a check of their names.
    type: dict
    default: {}
  timeout_seconds:
    description: Until a service is healthy.
    type: int
    default: 120
author:
  - Clusterwright developers
"""

import os
import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import accounts, files, karmada, removal, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

FILE_MODE = 0o640
DIRECTORY_MODE = 0o750
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
STOPPED = ("inactive", "failed")


def unit_body(params: dict) -> str:
    """The unit without its head."""
    return f"""\
[Unit]
Description=Karmada control plane: {params["name"]}
Wants=network-online.target
# It waits for what it needs, as long as it takes. When a machine goes down, etcd is the last.
After=network-online.target etcd.service
StartLimitIntervalSec=0

[Service]
Type=exec
User={karmada.USER}
Group={karmada.USER}
ExecStart={params["exec_start"]}
WorkingDirectory={karmada.STATE}
StateDirectory={os.path.basename(karmada.STATE)}
StateDirectoryMode=0750
UMask=0077
Restart=always
RestartSec=2
# As long as a Pod may take: an API server may wait a minute for those who watch.
TimeoutStopSec=30
LimitNOFILE=65536
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
"""


def check_variables(params: dict, secrets: dict) -> None:
    """What would be written elsewhere, or read by systemd as something else, is refused."""
    name, directory = params["name"], params["directory"]
    parts = os.path.normpath(directory).split("/")
    if os.path.normpath(directory) != directory or not directory.startswith(f"{karmada.HOME}/") or len(parts) < 4:
        raise StepFailure("InvalidVariables", f"karmada_service.directory is {directory!r}, and must be one below {karmada.HOME}")
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name):
        raise StepFailure("InvalidVariables", f"karmada_service.name is {name!r}, and must be lower-case letters, digits and dashes")
    if params["state"] == "absent":
        return
    for file in params["files"]:
        if not FILE_NAME.fullmatch(file):
            raise StepFailure("InvalidVariables", f"karmada_service.files has {file!r}, and a name must be letters, digits, dots, dashes")
    unknown = [key for key in params["files"].values() if secrets and key not in secrets]
    if unknown:
        raise StepFailure("InvalidVariables", f"karmada_service.files has {unknown[0]!r}, which is no file of the run")
    program, line = params["program"], params["exec_start"]
    if not program.startswith(f"{karmada.PROGRAMS}/") or os.path.normpath(program) != program:
        raise StepFailure("InvalidVariables", f"karmada_service.program is {program!r}, and must be below {karmada.PROGRAMS}")
    if not f"{line} ".startswith(f"{program} ") or not line.isprintable():
        raise StepFailure("InvalidVariables", f"karmada_service.exec_start must be one line that begins with {program}")


class Service:
    """The service as it is wanted."""

    def __init__(self, params: dict, call) -> None:
        self.params, self.check, self.timeout = params, call.check_mode, call.params["timeout_seconds"]
        self.secrets = call.params["secrets"]
        self.unit, self.directory = params["unit"], params["directory"]
        self.path = karmada.unit_path(self.unit)
        self.files = sorted(f"{self.directory}/{name}" for name in params["files"])

    def content(self) -> str:
        return karmada.unit_text(self.params["digest"], unit_body(self.params))

    def stray(self) -> list:
        """Files in its directory that are not wanted."""
        try:
            there = [f"{self.directory}/{name}" for name in os.listdir(self.directory)]
        except OSError:
            return []
        return sorted(path for path in there if path not in self.files)

    def make_directories(self, group: int) -> None:
        """All may look into the first one; into its own, its user alone."""
        os.makedirs(karmada.HOME, mode=0o755, exist_ok=True)
        parts = os.path.relpath(self.directory, karmada.HOME).split("/")
        for number in range(1, len(parts) + 1):
            path = os.path.join(karmada.HOME, *parts[:number])
            own = path == self.directory
            os.makedirs(path, mode=DIRECTORY_MODE if own else 0o755, exist_ok=True)
            if own:
                os.chown(path, 0, group)
                os.chmod(path, DIRECTORY_MODE)

    def write(self) -> list:
        """Brings the unit and the files to what is wanted. What changed."""
        given = {name: self.secrets[key] for name, key in self.params["files"].items()} if self.secrets else {}
        changed = [path for path in self.files if not os.path.exists(path)] if not given else []
        group = 0
        if not self.check:
            karmada.take()
            group = accounts.ensure(karmada.USER, karmada.STATE)
            self.make_directories(group)
        for name, content in sorted(given.items()):
            path = f"{self.directory}/{name}"
            if files.write(path, content, FILE_MODE, self.check, group):
                changed.append(path)
        changed += [path for path in self.stray() if self.remove(path)]
        if files.write(self.path, self.content(), 0o644, self.check):
            changed.append(self.path)
        return changed

    def remove(self, path: str) -> bool:
        if not self.check:
            removal.remove(path)
        return True

    def is_stopped(self) -> bool:
        now = units.state(self.unit)
        return now.get("ActiveState", "inactive") in STOPPED and now.get("UnitFileState") != "enabled"

    def stop(self) -> bool:
        """It neither runs nor comes back with a boot. True when it did."""
        if self.is_stopped():
            return False
        if not self.check:
            units.systemctl("disable", "--now", self.unit, what=f"stop {self.unit}")
        return True

    def erase(self) -> list:
        """Neither unit nor files are there. What was."""
        there = [path for path in (self.path, self.directory) if os.path.lexists(path)]
        if os.path.lexists(self.path):
            self.stop()
        if there and not self.check:
            for path in there:
                removal.remove(path)
            units.reload()
            attempt("systemctl", "reset-failed", self.unit)
        return there

    def start(self, changed: list) -> bool:
        program = self.params["program"]
        if not os.access(program, os.X_OK):
            raise StepFailure("ServiceFailed", f"there is no program {program} on this machine: run the step karmada-programs first")
        reads = tuple([self.path, program, *self.files])
        return units.ensure(self.unit, bool(changed), check=self.check, reads=reads)

    def is_ready(self) -> bool:
        """Whether it answers that it is well, as the process that was started: what listens there may be another one."""
        well, self.said = karmada.answer(self.params["health"])
        return well and units.state(self.unit).get("ActiveState") == "active"

    said = ""

    def prove(self) -> None:
        """Returns once it is healthy."""
        wait(
            self.is_ready,
            self.timeout,
            "ServiceFailed",
            lambda: f"{self.unit} is not healthy at {self.params['health'].get('url')}: {self.said}{units.journal(self.unit)}",
            pause=0.5,
        )


    def bring(self) -> tuple:
        """(what changed, whether it was started or stopped) once it is as it is wanted."""
        state, acted = self.params["state"], False
        if state == "absent":
            return self.erase(), False
        changed = self.write()
        if state == "stopped":
            if not self.check:
                units.reload()
            acted = self.stop()
        else:
            acted = self.start(changed)
            if not (self.check and (changed or acted)):
                self.prove()
        return changed, acted


def told(service: Service, changed: list, acted: bool) -> str:
    """What was done about it, or is to be; empty: nothing."""
    if changed:
        return f"{service.unit}: {'differing' if service.check else 'changed'}: {', '.join(changed)}"
    if acted:
        stopped = service.params["state"] == "stopped"
        return f"{service.unit}: {'it runs, and is to be stopped' if stopped else 'it did not run, or not with what is in its files'}"
    return ""


def stray_estimators(call, wanted: list) -> list:
    """Estimators that are here and are none of the wanted."""
    unwanted = [unit for unit in karmada.estimators() if unit not in {service.unit for service in wanted}]
    names = [unit.removeprefix("clusterwright-karmada-").removesuffix(".service") for unit in unwanted]
    absent = {"state": "absent", "digest": "", "files": {}}
    directory = f"{karmada.HOME}/pki"
    return [Service({"name": name, "unit": unit, "directory": f"{directory}/{name}", **absent}, call) for name, unit in zip(names, unwanted)]


def bring_estimators(call, wanted: list) -> tuple:
    """(files that changed, what was done) once they are those that are wanted."""
    changed, said = [], []
    for service in stray_estimators(call, wanted):
        changed += service.erase()
        said.append(f"{service.unit}: {'it is to go' if call.check_mode else 'gone'}")
    for service in wanted:
        own = service.write()
        acted = service.start(own)
        changed += own
        said += [text for text in [told(service, own, acted)] if text]
    digest = call.params.get("estimators_digest", "")
    if digest:
        if not karmada.DIGEST.fullmatch(digest):
            raise StepFailure("InvalidVariables", f"karmada_service.estimators_digest is {digest!r}, and must be letters, digits, dots, dashes")
        if files.write(karmada.ESTIMATORS, f"{digest}\n", 0o644, call.check_mode):
            changed.append(karmada.ESTIMATORS)
            said.append(f"the estimators {'differ' if call.check_mode else 'are'} {digest}")
    elif os.path.lexists(karmada.ESTIMATORS):
        changed.append(karmada.ESTIMATORS)
        said.append("no estimators" if not call.check_mode else "the estimators are to go")
        if not call.check_mode:
            removal.remove(karmada.ESTIMATORS)
    return changed, said


def work(call) -> dict:
    given = call.params.get("estimators")
    estimators = None if given is None else [Service(params, call) for params in given]
    for service in estimators or []:
        check_variables(service.params, call.params["secrets"])
        if not service.unit.startswith(karmada.ESTIMATOR_UNIT) or service.params["state"] != "started":
            raise StepFailure("InvalidVariables", f"karmada_service.estimators has {service.unit}, which is no estimator that is to run")
    services = [Service(params, call) for params in call.params["services"]]
    for service in services:
        check_variables(service.params, call.params["secrets"])
    done, files_changed, said = {}, [], []
    report = {"kind": "brought", "parts": done}
    for service in services:
        try:
            changed, acted = service.bring()
        except StepFailure as failure:
            if not call.check_mode:
                failure.extra["clusterwright"] = report
            raise
        done[service.params["name"]] = service.params["digest"] or "absent"
        files_changed += changed
        said += [text for text in [told(service, changed, acted)] if text]
    if estimators is not None:
        changed, told_of_them = bring_estimators(call, estimators)
        done["estimators"] = call.params.get("estimators_digest", "") or "absent"
        files_changed += changed
        said += told_of_them
    result = {"changed": bool(said), "files_changed": files_changed, "msg": "; ".join(said) or "nothing to do"}
    return result if call.check_mode else {**result, "clusterwright": report}
