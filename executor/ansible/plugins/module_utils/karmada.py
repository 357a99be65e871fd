# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The services of a Karmada control plane on a machine: where their things are, and which version of each is there."""

from __future__ import annotations

import os
import re
import socket
import ssl
import urllib.parse

from ansible_collections.clusterwright.cluster.plugins.module_utils import healthz, membership
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.files import text
from ansible_collections.clusterwright.cluster.plugins.module_utils.trust import believing

# Programs, each version in a directory of its own; settings and keys; what the services write themselves.
PROGRAMS, HOME, STATE = "/opt/clusterwright/karmada", "/etc/karmada", "/var/lib/karmada"
# Whom the services run as.
USER = "karmada"
BALANCER = f"{HOME}/balancer"
# What the estimators of members here are, all of them together; and what the names of their units begin with.
ESTIMATORS = f"{HOME}/estimators"
ESTIMATOR_UNIT = "clusterwright-karmada-estimator-"
BALANCER_UNIT = "clusterwright-karmada-balancer.service"
API_SERVER_UNIT = "clusterwright-karmada-apiserver.service"
UNIT_DIRECTORY = "/etc/systemd/system"
# Where the components listen: at the machine's address, and on this machine alone: health, metrics, the balancer.
SERVING = (5443, 7443, 8443, 9443, 9444)
LOCAL = (10257, 10351, 10357, 10358, 17443, 18000, 18080, 18081, 18351, 18357, 18358, 18443, 19443, 19444)
PORTS = (*SERVING, *LOCAL)
UNIT = re.compile(r"clusterwright-karmada-[a-z0-9]([-a-z0-9]*[a-z0-9])?\.service")
# What a part is known by: its version and a hash of all that it is made of.
DIGEST = re.compile(r"[A-Za-z0-9.-]{1,64}")
HEAD = "# Written by clusterwright.\n# digest: "


def unit_path(unit: str) -> str:
    """The file of the unit; InvalidVariables where it is none of a plane's."""
    if not UNIT.fullmatch(unit):
        raise StepFailure("InvalidVariables", f"{unit!r} is no unit of a Karmada control plane: clusterwright-karmada-NAME.service")
    return f"{UNIT_DIRECTORY}/{unit}"


def unit_text(digest: str, body: str) -> str:
    """A unit file that says at its head what it is made of."""
    if not DIGEST.fullmatch(digest):
        raise StepFailure("InvalidVariables", f"digest {digest!r}: 1 to 64 letters, digits, dots and dashes are allowed")
    return f"{HEAD}{digest}\n{body}"


def digest_of(unit: str) -> str:
    """What the unit that is there was made of; empty where there is none."""
    content = text(unit_path(unit)) or ""
    return content[len(HEAD) :].partition("\n")[0] if content.startswith(HEAD) else ""


def units() -> list:
    """The units of a plane that are on this machine."""
    try:
        return sorted(name for name in os.listdir(UNIT_DIRECTORY) if UNIT.fullmatch(name))
    except OSError:
        return []


def estimators() -> list:
    """Those of them that are estimators of members."""
    return [unit for unit in units() if unit.startswith(ESTIMATOR_UNIT)]


def is_ours() -> bool:
    """Whether what is in the directories above was put there by us. An administrator may have a Karmada of his own."""
    return os.path.exists(membership.KARMADA)


def take() -> None:
    """Notes that the directories are ours, before anything is put there. KarmadaForeignFiles where somebody's are."""
    if is_ours():
        return
    found = foreign()
    if found:
        raise StepFailure(
            "KarmadaForeignFiles",
            f"{found} has files that are not of this control plane: move them away, or take another machine; nothing was touched",
        )
    membership.save(membership.KARMADA, {})


def foreign() -> str:
    """A directory with files of somebody else's; empty where there is none."""
    if is_ours():
        return ""
    for directory in (HOME, STATE):
        try:
            if os.listdir(directory):
                return directory
        except OSError:
            continue
    return ""


def context(health: dict) -> ssl.SSLContext | None:
    """Whom to believe, and who asks; None: anybody, as nobody."""
    authority, client = health.get("authority") or "", health.get("client") or {}
    if not authority and not client:
        return None
    known = believing(cafile=authority) if authority else ssl._create_unverified_context()  # pylint: disable=protected-access
    if client:
        known.load_cert_chain(client.get("certificate") or "", client.get("key") or "")
    return known


def is_open(port: int) -> bool:
    """Whether something listens at the port of this machine."""
    try:
        with socket.create_connection(("127.0.0.1", port), 2):
            return True
    except OSError:
        return False


def answer(health: dict) -> tuple:
    """(well, what it said) of a service whose health is {url, authority, client: {certificate, key}, opens}."""
    url = urllib.parse.urlsplit(str(health.get("url") or ""))
    if url.scheme not in ("http", "https") or not url.hostname or not url.port:
        raise StepFailure("InvalidVariables", f"health.url is {health.get('url')!r}, and must be http(s)://ADDRESS:PORT/PATH")
    path = url.path + (f"?{url.query}" if url.query else "")
    try:
        well, said = healthz.answer((url.scheme, url.hostname, url.port, path or "/"), context(health))
    except (OSError, ValueError) as error:
        # A file that is not there, or that holds no certificate.
        return False, f"it cannot be asked: {error}"
    opens = int(health.get("opens") or 0)
    if well and opens and not is_open(opens):
        return False, f"it runs, and does not listen at port {opens} yet"
    return well, said
