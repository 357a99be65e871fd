#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Has everything in etcd written anew that is not encrypted as this machine's API server encrypts it by now."""

from __future__ import annotations

DOCUMENTATION = r"""
module: secrets_rewrite
short_description: Rewrites the objects that are not encrypted as this machine's API server writes them, until etcd has none of them
description:
  - This machine's API server must have read the configuration that C(secrets) has, or nothing is written (C(AuthoritiesDiffer)).
  - etcd is asked for all that it has stored of the resources that the configuration names. Each object that was not written as the first
    provider of its resource does it - with another key, or plain, or encrypted where it is to be plain - is patched with nothing, through this
    machine's API server, which writes it anew for that. Of a KMS plug-in also those that another of its keys has encrypted. One that was
    deleted meanwhile is left to the next round.
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

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    api,
    authority_reads,
    control_plane,
    encrypted_resources,
    encryption_keys,
    key_pairs,
    kms_plugin,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api
from ansible_collections.clusterwright.cluster.plugins.module_utils.encrypted_resources import Paths, Place
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.stored_values import StoredValues

PAUSE_SECONDS = 1
# Whoever was deleted, or changed, meanwhile.
CONFLICTS = (404, 409)
NAMED = 3
# An API server asks a plug-in so often for its key.
PLUGIN_SECONDS = 10


class Wanted:
    """How each resource is to be in etcd."""

    def __init__(self, secrets: list) -> None:
        self.entries = [found for entry in secrets for found in encryption_keys.entries(entry["content"])]
        if not self.entries:
            raise StepFailure("InvalidVariables", "secrets has no EncryptionConfiguration: correct the run's files")
        self.writers: dict = {}
        self.key_ids: dict = {}

    def folders(self) -> list:
        """Where all of it is, each once."""
        found = [folder for patterns, _providers in self.entries for pattern in patterns for folder in encrypted_resources.folders(pattern)]
        return sorted({folder for folder in found if not any(folder != other and folder.startswith(other) for other in found)})

    def ask_plugins(self) -> None:
        """Learns which keys they encrypt with by now."""
        endpoints = {provider.endpoint for _patterns, providers in self.entries for provider in providers[:1] if provider.endpoint}
        self.key_ids = {endpoint: kms_plugin.key_id(endpoint, PLUGIN_SECONDS) for endpoint in endpoints}

    def writer(self, resource: str):
        if resource not in self.writers:
            self.writers[resource] = encryption_keys.providers(self.entries, resource)[0]
        return self.writers[resource]

    def lack(self, place: Place, value: bytes) -> str:
        """How the value should be and is not; empty: it is."""
        writer = self.writer(place.resource)
        if not writer.wrote(value):
            return str(writer)
        key = self.key_ids.get(writer.endpoint)
        is_former = key is not None and kms_plugin.key_id_in(value[len(writer.prefix):]) != key
        return f"encrypted with the key that {writer.name} has by now" if is_former else ""


class Machine:
    """The work on one machine."""

    def __init__(self, params: dict) -> None:
        self.params = params
        self.prefix = f"/{params['prefix'].strip('/')}/"
        self.wanted = Wanted(params["secrets"])

    def check(self) -> None:
        """Whether this machine's API server has read what is wanted."""
        differing = [f"{entry['path']} has other keys than the run" for entry in key_pairs.differing(self.params["secrets"])]
        if authority_reads.is_owed(control_plane.APISERVER):
            differing.append("the API server has read other files than those that are there")
        if differing:
            raise StepFailure("AuthoritiesDiffer", f"{'; '.join(differing)}: play the step certificate-authorities first")

    def client(self) -> Api:
        client = Api(api.ADMIN)
        client.server = f"https://{self.params['address']}:{self.params['port']}"
        return client

    def other(self):
        """Pages of (place, how it should be and is not), each with the number of those that were looked at."""
        self.wanted.ask_plugins()
        for folder in self.wanted.folders():
            for page in StoredValues(self.params["endpoints"]).below(f"{self.prefix}{folder}"):
                places = [(Place(f"{folder}{key}"), value) for key, value in page]
                lacks = [(place, self.wanted.lack(place, value)) for place, value in places]
                yield [(place, lack) for place, lack in lacks if lack], len(page)

    def rewrite(self, client: Api, path: str) -> str:
        """Why it is not rewritten; empty when it is, or another one stands in its place."""
        try:
            # What is not as the API server writes it is written, though nothing changes; what changes meanwhile stays.
            client.request("PATCH", path, {}, api.MERGE)
        except api.Refused as refused:
            return "" if refused.status in CONFLICTS else str(refused)
        except OSError as error:
            return str(error)
        return ""

    def rewrite_at(self, client: Api, paths: Paths, place: Place) -> str:
        try:
            path = paths.path(place)
        except (OSError, KeyError, api.Refused) as error:
            return f"the API does not have it: {error}"
        return self.rewrite(client, path)

    def round(self, client: Api, paths: Paths) -> tuple:
        """(how many objects there are, how they should be and are not, why some of them are not yet)."""
        total, before, failed = 0, {}, {}
        for found, size in self.other():
            total += size
            for place, lack in found:
                before[str(place)] = lack
                why = self.rewrite_at(client, paths, place)
                if why:
                    failed[str(place)] = why
        return total, before, failed

    def bring(self) -> dict:
        self.check()
        # It holds files open: one for all that there is to do.
        client = self.client()
        paths = Paths(client)
        rewritten, fewest, since = 0, None, time.monotonic()
        while True:
            total, before, failed = self.round(client, paths)
            if not before:
                return {"changed": rewritten > 0, "msg": f"{rewritten} objects were rewritten; all {total} are as this API server writes them"}
            rewritten += len(before) - len(failed)
            if fewest is None or len(before) < fewest:
                fewest, since = len(before), time.monotonic()
            elif time.monotonic() - since > self.params["timeout_seconds"]:
                raise StepFailure("SecretsNotRewritten", told(before, failed))
            time.sleep(PAUSE_SECONDS)

    def missing(self) -> str:
        """What is not yet as it is wanted; empty when all is."""
        self.check()
        before = {str(place): lack for found, _size in self.other() for place, lack in found}
        return told(before, {}) if before else ""


def told(before: dict, failed: dict) -> str:
    """How many are not as they should be, some of them by name; those that are refused first."""
    names = sorted(before, key=lambda name: (name not in failed, name))[:NAMED]
    shown = [f"{name} is not {before[name]}{f' ({failed[name]})' if name in failed else ''}" for name in names]
    return f"{len(before)} objects in etcd are not as this API server writes them: {'; '.join(shown)}"


def work(call) -> dict:
    machine = Machine(call.params)
    if not call.check_mode:
        return machine.bring()
    missing = machine.missing()
    return {"changed": bool(missing), "msg": missing or "everything in etcd is as this API server writes it"}
