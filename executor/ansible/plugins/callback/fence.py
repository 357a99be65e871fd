# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Keeps playbooks off the machine that Ansible runs on.

Loaded in runs with playbooks that are not of this collection. They are there for the hosts of the run; what would work
here instead is refused: every connection but SSH, and lookups that run a program, read the environment or ask another
server. It is no sandbox: a playbook reads and writes files here where an action does (copy, fetch, template).
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: fence
type: aggregate
short_description: Refuses connections and lookups that would work on the controller
description:
  - Every connection plugin but ssh is refused, and every lookup plugin that is not known to be harmless.
requirements: []
"""

import functools

from ansible.errors import AnsibleError
from ansible.plugins.callback import CallbackBase
from ansible.plugins.loader import connection_loader, lookup_loader

CONNECTIONS = ("ssh",)
# What they read is in the playbook, in variables, or in a file beside it.
LOOKUPS = (
    "dict", "file", "first_found", "indexed_items", "inventory_hostnames", "items", "list", "nested", "random_choice",
    "sequence", "subelements", "template", "together", "varnames", "vars",
)
# What the steps of this collection look up beside a playbook of others: files of the run, and what ssh has for a machine.
OWN_LOOKUPS = ("clusterwright.cluster.encryption", "clusterwright.cluster.login_keys")


def refusing(get, kind: str, allowed: tuple, own: tuple, why: str):
    """The loader's function, for these names of ansible.builtin, and these of this collection, only."""

    @functools.wraps(get)
    def fenced(name, *args, **kwargs):
        short = str(name).removeprefix("ansible.builtin.").removeprefix("ansible.legacy.")
        if short not in allowed + own:
            raise AnsibleError(
                f"{kind} {short!r} is refused: {why}; allowed: {', '.join(allowed)}"
            )
        return get(name, *args, **kwargs)

    return fenced


class CallbackModule(CallbackBase):
    """Hears nothing; its being loaded is what it does."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "clusterwright.cluster.fence"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        for loader, kind, allowed, own, why in (
            (connection_loader, "connection", CONNECTIONS, (), "a playbook works on the hosts of its run, by SSH"),
            (lookup_loader, "lookup", LOOKUPS, OWN_LOOKUPS, "a playbook does nothing on the executor"),
        ):
            for method in ("get", "get_with_context"):
                setattr(loader, method, refusing(getattr(loader, method), kind, allowed, own, why))
