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
  remove:
    description: Files that must not be there.
    type: list
    elements: path
    default: []
  prune:
    description:
      - Directories that have files of ours, which all begin with one line. A file there that begins with it, and is not among C(files) and
        C(secrets), is removed with the directory that it leaves empty.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: The directory.
        type: path
        required: true
      first_line:
        description: The line.
        type: str
        required: true
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
extends_documentation_fragment:
  - clusterwright.cluster.arguments.files
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils import files, units


def work(call) -> dict:
    params, check = call.params, call.check_mode
    changed = files.write_all(params["files"], check) + files.write_all(params["secrets"], check, files.SECRET)
    changed += [path for path in params["remove"] if files.remove(path, check)]
    wanted = {entry["path"] for entry in (params["files"] or []) + (params["secrets"] or [])}
    for place in params["prune"]:
        changed += files.prune(place["path"], place["first_line"], wanted, check)

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
