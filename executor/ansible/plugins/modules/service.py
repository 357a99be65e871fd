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
  restart:
    description: Restart in any case, since its program changed.
    type: bool
    default: false
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
    restart = params["restart"] or any(not path.startswith(tuple(params["no_restart_for"])) for path in changed)
    acted = units.ensure(params["name"], restart, params["start"], check)
    if params["socket"] and not check:
        units.wait_for_socket(params["socket"], params["name"])
    return {"changed": bool(changed) or acted, "files_changed": changed}
