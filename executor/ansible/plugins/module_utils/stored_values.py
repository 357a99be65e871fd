# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What an API server's etcd has stored, read as that API server would: by HTTPS, with its own certificate. A control plane need have no
etcdctl, and no other certificate of etcd's."""

from __future__ import annotations

import base64
import http.client
import json
import urllib.parse
from collections.abc import Iterator

from ansible_collections.clusterwright.cluster.plugins.module_utils import certificate_places
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.trust import believing

# Values of 1 MiB each are read in the time that a request has.
PAGE = 50
TIMEOUT_SECONDS = 60
CLIENT = "apiserver-etcd-client"


class Refused(Exception):
    """A member does not answer as it should."""


class StoredValues:
    """All values, through whichever member answers."""

    def __init__(self, endpoints: list) -> None:
        self.endpoints = list(endpoints)
        try:
            self.context = believing(cafile=f"{certificate_places.KUBERNETES}/pki/etcd/ca.crt")
            self.context.load_cert_chain(certificate_places.pki(CLIENT), certificate_places.key(CLIENT))
        except OSError as error:
            raise StepFailure("EtcdUnhealthy", f"failed to read the API server's certificates for etcd: {error}") from error

    def below(self, prefix: str) -> Iterator[list]:
        """Pages of (key without the prefix, value), as a majority of etcd's members has them when the page is read."""
        start, end = prefix.encode(), prefix[:-1].encode() + bytes([ord(prefix[-1]) + 1])
        while True:
            said = self.ask({"key": encoded(start), "range_end": encoded(end), "limit": str(PAGE)})
            found = [(base64.b64decode(entry["key"]), base64.b64decode(entry.get("value") or "")) for entry in said.get("kvs") or []]
            yield [(key.decode()[len(prefix):], value) for key, value in found]
            if not said.get("more"):
                return
            # The next possible key.
            start = found[-1][0] + b"\0"

    def ask(self, body: dict) -> dict:
        problems = []
        for endpoint in self.endpoints:
            try:
                return self.ask_at(endpoint, body)
            except (OSError, Refused, ValueError, http.client.HTTPException) as problem:
                problems.append(f"{endpoint}: {problem}")
        raise StepFailure(
            "EtcdUnhealthy",
            f"what is stored in etcd could not be read through its gateway (grpc-gateway): {'; '.join(problems) or 'there is no endpoint'}",
        )

    def ask_at(self, endpoint: str, body: dict) -> dict:
        address = urllib.parse.urlsplit(endpoint)
        connection = http.client.HTTPSConnection(
            address.hostname or "", address.port or 2379, timeout=TIMEOUT_SECONDS, context=self.context
        )
        try:
            connection.request("POST", "/v3/kv/range", json.dumps(body))
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise Refused(f"HTTP {answer.status}: {said[:200].decode('utf-8', 'replace')}")
        return json.loads(said)


def encoded(key: bytes) -> str:
    return base64.b64encode(key).decode()
