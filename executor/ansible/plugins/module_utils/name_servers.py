# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The servers that this machine asks for names: those of systemd-resolved where it is at work, else of /etc/resolv.conf, if nobody else
writes it.

The kubelet gives what it finds there to each Pod that starts with the DNS policy Default, CoreDNS among them."""

from __future__ import annotations

import os
import re

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    distribution_packages,
    drop_in,
    files,
    machine,
    membership,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

RESOLVED = "systemd-resolved.service"
RESOLVED_FILE = "/etc/systemd/resolved.conf.d/90-clusterwright.conf"
# What /etc/resolv.conf leads to where systemd-resolved has it.
RESOLVED_FOLDERS = ("/run/systemd/resolve/", "/usr/lib/systemd/", "/lib/systemd/")
PATH = "/etc/resolv.conf"
# What the file held before.
FORMER = f"{membership.HOME}/resolv.json"
# Programs that write the file anew whenever they like, by their names as processes.
WRITERS = ("dhclient", "dhcpcd", "udhcpc")
GENERATED = re.compile(r"^\s*[#;].*\b(?:generated|managed|maintained) by (\S+)", re.MULTILINE | re.IGNORECASE)


def by_resolved() -> bool:
    """Whether systemd-resolved is to be given the servers; else they are written into the file. A failure where that is others'."""
    real = os.path.realpath(PATH)
    if os.path.islink(PATH):
        if not real.startswith(RESOLVED_FOLDERS):
            raise refusal(f"{PATH} leads to {real}, which another program writes")
        if units.state(RESOLVED).get("ActiveState") != "active":
            raise refusal(f"{PATH} is systemd-resolved's, which does not run (systemctl enable --now systemd-resolved)")
        return True
    writer = written_by()
    if writer:
        raise refusal(f"{PATH} is written by {writer}")
    return False


def written_by() -> str:
    """The program that writes the file, as far as that shows."""
    content = machine.text(PATH)
    found = "" if content.startswith(drop_in.HEAD) else GENERATED.search(content)
    if found:
        return found.group(1).strip(".,")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        name = machine.text(f"/proc/{pid}/comm")
        if name in WRITERS:
            return f"{name} (process {pid})"
    return ""


def refusal(what: str) -> StepFailure:
    return StepFailure(
        "ResolverManaged",
        f"configuration.machine.dnsServers and searchDomains: {what}: give them to that program and take them back here, or have"
        f" systemd-resolved at work ({distribution_packages.hints().INSTALL} systemd-resolved)",
    )


def lines_of(content: str, words: tuple) -> list:
    return [line for line in content.splitlines() if line.split()[:1] and line.split()[0] in words]


def of_file(servers: list, domains: list, former: str) -> str:
    """The file with these; what is not given is as it was, and so are its options."""
    search = [f"search {' '.join(domains)}"] if domains else lines_of(former, ("search", "domain"))
    names = [f"nameserver {server}" for server in servers] or lines_of(former, ("nameserver",))
    kept = lines_of(former, ("options", "sortlist"))
    return drop_in.HEAD + "".join(f"{line}\n" for line in search + names + kept)


def set_file(servers: list, domains: list, check: bool) -> list:
    content = files.read(PATH)
    known = membership.read(FORMER)
    # One that others have written since is what there was before.
    former = known.get("content", "") if known and content.startswith(drop_in.HEAD) else content
    wanted = of_file(servers, domains, former)
    if content == wanted and known:
        return []
    if not check:
        # First what goes, so that an attempt that is cut short knows it still.
        membership.save(FORMER, {"content": former})
        files.replace_foreign(PATH, wanted)
    return [PATH]


def set_back(check: bool) -> list:
    """Gives the file what it held before, unless others have written it since."""
    known = membership.read(FORMER)
    if not known:
        return []
    changed = [PATH] if files.read(PATH).startswith(drop_in.HEAD) and not os.path.islink(PATH) else [FORMER]
    if not check:
        if changed == [PATH]:
            files.replace_foreign(PATH, known.get("content", ""))
        files.remove(FORMER)
    return changed


def apply(servers: list, domains: list, check: bool) -> list:
    """Has names asked for at these servers and completed by these domains; without any it is as it was before. What changed."""
    if not servers and not domains:
        return set_back(check) + drop_in.ensure(RESOLVED_FILE, "", RESOLVED, check)
    if not by_resolved():
        return drop_in.ensure(RESOLVED_FILE, "", RESOLVED, check) + set_file(servers, domains, check)
    # An empty value first takes back what other files name; `~.` sends all names to these, and none to those of an interface.
    lines = ["DNS=", f"DNS={' '.join(servers)}"] if servers else []
    lines += ["Domains=", f"Domains={' '.join([*domains, *(['~.'] if servers else [])])}"]
    text = "".join(f"{line}\n" for line in ["[Resolve]", *lines])
    return set_back(check) + drop_in.ensure(RESOLVED_FILE, text, RESOLVED, check)
