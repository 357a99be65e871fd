# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""etcd as seen through etcdctl and its /health page."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.parse

from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


class Etcd:
    """Some members of a cluster, reached with the health check's certificate."""

    def __init__(self, pki: str, endpoints: list) -> None:
        self.pki = pki
        self.endpoints = endpoints
        self.said = ""

    def healthy(self) -> bool:
        """Whether every endpoint answers and has a leader; what is wrong is in `said`."""
        return all(self.healthy_at(endpoint) for endpoint in self.endpoints)

    def healthy_at(self, endpoint: str) -> bool:
        address = urllib.parse.urlsplit(endpoint)
        try:
            context = ssl.create_default_context(cafile=f"{self.pki}/ca.crt")
            context.load_cert_chain(f"{self.pki}/healthcheck-client.crt", f"{self.pki}/healthcheck-client.key")
            connection = http.client.HTTPSConnection(address.hostname or "", address.port or 2379, timeout=5, context=context)
            try:
                connection.request("GET", "/health")
                answer = connection.getresponse()
                body = json.loads(answer.read(4096))
            finally:
                connection.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.said = f"{endpoint}: {error}"
            return False
        self.said = f"{endpoint}: {body.get('reason') or 'unhealthy'}"
        return body.get("health") == "true"

    def etcdctl(self, *arguments: str, timeout: float = 20):
        """What etcdctl says, as JSON."""
        output = attempt(
            "etcdctl",
            f"--endpoints={','.join(self.endpoints)}",
            f"--cacert={self.pki}/ca.crt",
            f"--cert={self.pki}/healthcheck-client.crt",
            f"--key={self.pki}/healthcheck-client.key",
            "--write-out=json",
            *arguments,
            timeout=timeout,
        )
        if not output.ok:
            raise StepFailure("EtcdUnhealthy", f"etcdctl {' '.join(arguments[:2])}: {output.said}")
        try:
            return json.loads(output.out)
        except ValueError as error:
            raise StepFailure("EtcdUnhealthy", f"etcdctl {' '.join(arguments[:2])} said no JSON: {error}") from error

    def members(self) -> list:
        return self.etcdctl("member", "list")["members"]

    def cluster_ids(self) -> dict:
        """The cluster's ID as each endpoint tells it."""
        return {
            entry["Endpoint"]: entry["Status"]["header"]["cluster_id"] for entry in self.etcdctl("endpoint", "status")
        }

    def add_learner(self, name: str, peer_url: str) -> list:
        """Adds the member unless it is there, and returns all as name=URL. A learner takes part in no vote, so a
        member that never comes up costs no quorum."""
        members = self.members()
        if not any(peer_url in member["peerURLs"] for member in members):
            self.etcdctl("member", "add", name, f"--peer-urls={peer_url}", "--learner")
            members = self.members()
        return [
            f"{name if url == peer_url else member.get('name')}={url}" for member in members for url in member["peerURLs"]
        ]

    def promote(self, name: str, timeout: float) -> bool:
        """Makes a learner a voting member once it caught up. True when it was one."""
        learners = [member for member in self.members() if member.get("name") == name and member.get("isLearner")]
        if not learners:
            return False
        said = ""

        def promoted() -> bool:
            nonlocal said
            try:
                self.etcdctl("member", "promote", f"{learners[0]['ID']:x}")
            except StepFailure as failure:
                said = failure.message
                return False
            return True

        wait(promoted, timeout, "EtcdUnhealthy", lambda: f"learner {name} was not promoted: {said}", pause=1)
        return True
