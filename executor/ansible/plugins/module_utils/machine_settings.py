# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What the cluster's configuration asks of services of the machine's distribution; what it does not ask for any more is as it was."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    authorized_keys,
    journal_limits,
    name_servers,
    proxies,
    time_servers,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.finding import error


def apply(settings: dict, user: str, login: list, check: bool) -> list:
    """Brings the fields of C(machine_settings) that are of services. What changed."""
    changed = time_servers.apply(settings.get("timeServers", []), check)
    changed += name_servers.apply(settings.get("dnsServers", []), settings.get("searchDomains", []), check)
    changed += authorized_keys.apply(user, settings.get("authorizedKeys", []), login, check)
    changed += proxies.apply(settings.get("proxy", {}), check)
    return changed + journal_limits.apply(settings.get("journal", {}), check)


def forget(login: list) -> None:
    """Takes all of it back, as far as that goes: the machine leaves its cluster."""
    for undo in (
        lambda: time_servers.apply([], False),
        lambda: name_servers.apply([], [], False),
        lambda: authorized_keys.apply("", [], login, False),
        lambda: journal_limits.apply({}, False),
        lambda: proxies.apply({}, False),
    ):
        try:
            undo()
        except (OSError, StepFailure):
            # What is left is found by the reset's look at what there is.
            continue


def machine_services(params: dict) -> list:
    """Preflight: what the machine lacks for it."""
    settings = params["machine_settings"]
    found = []
    for name, fields, look in (
        ("time-service", ("timeServers",), time_servers.service),
        ("resolver", ("dnsServers", "searchDomains"), name_servers.by_resolved),
    ):
        if any(settings.get(field) for field in fields):
            try:
                look()
            except StepFailure as failure:
                found.append(error(name, failure.message))
    return found
