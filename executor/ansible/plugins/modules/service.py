#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""A systemd service with its files, in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: service
short_description: Writes a service's files, enables and starts it, restarts it only when something differs, waits until it answers
options:
  name:
    description: Unit name with suffix.
    type: str
    required: true
  files:
    description: Files of the service, the unit among them.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Where.
        type: path
        required: true
      content:
        description: What.
        type: str
        required: true
      mode:
        description: Octal mode.
        type: str
        default: "0644"
  secrets:
    description: Like files, for content that must not show anywhere.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Where.
        type: path
        required: true
      content:
        description: What.
        type: str
        required: true
      mode:
        description: Octal mode.
        type: str
        default: "0600"
  remove:
    description: Files that must not be there.
    type: list
    elements: path
    default: []
  no_restart_for:
    description: Files that the running service reads by itself.
    type: list
    elements: path
    default: []
  reads:
    description: Further files that it reads at its start, its program among them.
    type: list
    elements: path
    default: []
  start:
    description: Keep it running; false only enables it.
    type: bool
    default: true
  socket:
    description: Unix socket that must accept connections in the end.
    type: path
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, units


def work(call) -> dict:
    params, check = call.params, call.check_mode
    changed = files.write_all(params["files"], check) + files.write_all(params["secrets"], check, files.SECRET)
    changed += [path for path in params["remove"] if files.remove(path, check)]

    def counts(path: str) -> bool:
        return not path.startswith(tuple(params["no_restart_for"]))

    known = [entry["path"] for entry in (params["files"] or []) + (params["secrets"] or [])] + params["reads"] + params["remove"]
    restart = any(map(counts, changed))
    acted = units.ensure(params["name"], restart, params["start"], check, reads=tuple(filter(counts, known)))
    if params["socket"] and not check:
        units.wait_for_socket(params["socket"], params["name"])
    due = bool(changed) or acted
    said = "nothing to do"
    if due:
        said = f"differing: {', '.join(changed)}" if changed else "it did not run, or not with what is in its files"
    return {"changed": due, "due": due, "files_changed": changed, "msg": f"{params['name']}: {said}"}
