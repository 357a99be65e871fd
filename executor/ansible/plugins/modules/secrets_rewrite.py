#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Has all Secrets in etcd encrypted with the key that encrypts by now."""

from __future__ import annotations

DOCUMENTATION = r"""
module: secrets_rewrite
short_description: Rewrites the Secrets that are not encrypted with the first key of this machine's API server, until etcd has none of them
description:
  - This machine's API server must have read the keys that C(secrets) has, or nothing is written (C(AuthoritiesDiffer)).
  - etcd is asked for all that it has stored as Secrets. Each that does not name the first key as the one that it was encrypted with is read
    and written back unchanged, through this machine's API server, which encrypts it anew for that. One that was changed or deleted
    meanwhile is left to the next round.
  - It is done once a round through etcd has found none. C(SecretsNotRewritten) if there are some and it gets no further.
options:
  secrets:
    description: The API server's EncryptionConfiguration, as C(path) and C(content).
    type: list
    elements: dict
    required: true
  endpoints:
    description: Client URLs of etcd, as this machine's API server has them.
    type: list
    elements: str
    required: true
  prefix:
    description: What the API server puts before all keys.
    type: str
    default: /registry
  timeout_seconds:
    description: For as long it goes on without getting any further.
    type: int
    default: 240
extends_documentation_fragment:
  - clusterwright.cluster.arguments.apiserver
author:
  - Clusterwright developers
"""

import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, authority_reads, control_plane, encryption_keys, key_pairs
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.stored_values import StoredValues

PAUSE_SECONDS = 1
# Whoever was changed or deleted meanwhile.
CONFLICTS = (404, 409)
NAMED = 3


class Machine:
    """The work on one machine."""

    def __init__(self, params: dict) -> None:
        self.params = params
        self.prefix = f"/{params['prefix'].strip('/')}/secrets/"

    def encrypted(self) -> bytes:
        """What a value begins with that was encrypted with the first key, which this machine's API server must have read."""
        keys = [key for entry in self.params["secrets"] for key in encryption_keys.in_text(entry["content"])]
        if not keys:
            raise StepFailure("InvalidVariables", "secrets has no EncryptionConfiguration with a key: correct the run's files")
        differing = [f"{entry['path']} has other keys than the run" for entry in key_pairs.differing(self.params["secrets"])]
        if authority_reads.is_owed(control_plane.APISERVER):
            differing.append("the API server has read other files than those that are there")
        if differing:
            raise StepFailure("AuthoritiesDiffer", f"{'; '.join(differing)}: play the step certificate-authorities first")
        return f"k8s:enc:secretbox:v1:{keys[0][0]}:".encode()

    def client(self) -> Api:
        client = Api(api.ADMIN)
        client.server = f"https://{self.params['address']}:{self.params['port']}"
        return client

    def other(self, encrypted: bytes):
        """Pages of the names, as NAMESPACE/NAME, that are not encrypted so, each with the number of those that were looked at."""
        for page in StoredValues(self.params["endpoints"]).below(self.prefix):
            yield [key for key, value in page if not value.startswith(encrypted)], len(page)

    def rewrite(self, client: Api, name: str) -> str:
        """Why it is not rewritten; empty when it is, or another one stands in its place."""
        namespace, _slash, name = name.partition("/")
        path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
        try:
            client.request("PUT", path, client.request("GET", path))
        except api.Refused as refused:
            return "" if refused.status in CONFLICTS else str(refused)
        except OSError as error:
            return str(error)
        return ""

    def round(self, client: Api, encrypted: bytes) -> tuple:
        """(how many Secrets there are, how many were not encrypted so, why some of them are not yet, by their names)."""
        total, before, failed = 0, 0, {}
        for names, size in self.other(encrypted):
            total, before = total + size, before + len(names)
            answers = {name: self.rewrite(client, name) for name in names}
            failed.update({name: why for name, why in answers.items() if why})
        return total, before, failed

    def bring(self) -> dict:
        # It holds files open: one for all that there is to do.
        encrypted, client = self.encrypted(), self.client()
        rewritten, fewest, since = 0, None, time.monotonic()
        while True:
            total, before, failed = self.round(client, encrypted)
            if not before:
                return {"changed": rewritten > 0, "msg": f"{rewritten} Secrets were rewritten; all {total} are encrypted with {name_in(encrypted)}"}
            rewritten += before - len(failed)
            if fewest is None or before < fewest:
                fewest, since = before, time.monotonic()
            elif time.monotonic() - since > self.params["timeout_seconds"]:
                raise StepFailure("SecretsNotRewritten", told(before, encrypted, failed))
            time.sleep(PAUSE_SECONDS)

    def missing(self) -> str:
        """What is not yet as it is wanted; empty when all is."""
        encrypted = self.encrypted()
        names = [name for names, _size in self.other(encrypted) for name in names]
        return told(len(names), encrypted, dict.fromkeys(names, "")) if names else ""


def name_in(encrypted: bytes) -> str:
    """The key's name."""
    return encrypted.decode().split(":")[-2]


def told(count: int, encrypted: bytes, names: dict) -> str:
    """So many are not encrypted as they should be, some of them by name."""
    shown = ", ".join(f"{name} ({why})" if why else name for name, why in list(names.items())[:NAMED])
    return f"{count} Secrets in etcd are not encrypted with {name_in(encrypted)}{': ' if shown else ''}{shown}"


def work(call) -> dict:
    machine = Machine(call.params)
    if not call.check_mode:
        return machine.bring()
    missing = machine.missing()
    return {"changed": bool(missing), "msg": missing or "all Secrets in etcd are encrypted with the key that encrypts by now"}
