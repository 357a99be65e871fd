# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""etcd as seen through etcdctl and its /health page."""

from __future__ import annotations

import http.client
import json
import socket
import time
import urllib.parse

from ansible_collections.clusterwright.cluster.plugins.module_utils.api import wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.trust import believing

LOCAL = "https://127.0.0.1:2379"
# How a member is. A member is well only while a majority agrees with it.
WELL, LEADERLESS, SILENT, UNCLEAR = "well", "without a leader", "silent", "unclear"
PATIENCE_SECONDS = 30
# The alarms of a member whose database is full, and of one whose data differs from the others', as etcd numbers them.
NO_SPACE, CORRUPT = 1, 2
ALARMS = {NO_SPACE: "NOSPACE", CORRUPT: "CORRUPT"}
# How long a member may take to go through its whole database.
HASH_SECONDS, WHOLE_SECONDS = 100, 900
# A key that nobody has.
NO_KEY = "clusterwright.dev/read"


class Etcd:
    """Some members of a cluster, reached with the health check's certificate."""

    def __init__(self, pki: str, endpoints: list) -> None:
        self.pki = pki
        self.endpoints = endpoints
        self.said = ""

    def at(self, endpoints: list) -> Etcd:
        """The same cluster through other members."""
        return Etcd(self.pki, endpoints)

    def alive(self) -> Etcd:
        """The same cluster through those of the endpoints that are healthy: a dead one costs each command its patience."""
        return self.at([endpoint for endpoint in self.endpoints if self.healthy_at(endpoint)])

    def alive_soon(self) -> Etcd:
        """Like alive, with patience for machines that are busy."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            alive = self.alive()
            if alive.endpoints or not self.endpoints or time.monotonic() > deadline:
                return alive
            time.sleep(1)

    def healthy(self) -> bool:
        """Whether every endpoint answers and has a leader; what is wrong is in `said`."""
        return all(self.healthy_at(endpoint) for endpoint in self.endpoints)

    def healthy_at(self, endpoint: str) -> bool:
        return self.look(endpoint) == WELL

    def healthy_soon(self, endpoint: str) -> bool:
        """Like healthy_at, with patience for a machine that is busy."""
        return any(self.healthy_at(endpoint) for _try in range(3))

    def look(self, endpoint: str, path: str = "/health") -> str:
        """How the member is; what it said is in `said`."""
        address = urllib.parse.urlsplit(endpoint)
        target = (address.hostname or "", address.port or 2379)
        try:
            # The kernel answers for a process that is busy, so whoever refuses this is not there.
            socket.create_connection(target, timeout=5).close()
        except OSError as error:
            self.said = f"{endpoint}: {error}"
            return SILENT
        try:
            context = believing(cafile=f"{self.pki}/ca.crt")
            context.load_cert_chain(f"{self.pki}/healthcheck-client.crt", f"{self.pki}/healthcheck-client.key")
            connection = http.client.HTTPSConnection(*target, timeout=5, context=context)
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                body = json.loads(answer.read(4096))
            finally:
                connection.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.said = f"{endpoint}: {error}"
            return UNCLEAR
        self.said = f"{endpoint}: {body.get('reason') or 'unhealthy'}"
        if body.get("health") == "true":
            return WELL
        return LEADERLESS if "NO LEADER" in str(body.get("reason")) else UNCLEAR

    def works(self, endpoint: str) -> bool:
        """Whether the member answers and has a leader, also when its database is full."""
        return self.look(endpoint, "/health?exclude=NOSPACE") == WELL

    def serves(self, endpoint: str) -> bool:
        """Whether the member answers and has a leader, whatever alarms there are."""
        return self.look(endpoint, "/health?exclude=NOSPACE&exclude=CORRUPT") == WELL

    def command(self, *arguments: str, timeout: float = 20, stdin: str | None = None) -> str:
        """What etcdctl says."""
        output = attempt(
            "etcdctl",
            f"--endpoints={','.join(self.endpoints)}",
            f"--cacert={self.pki}/ca.crt",
            f"--cert={self.pki}/healthcheck-client.crt",
            f"--key={self.pki}/healthcheck-client.key",
            "--write-out=json",
            *arguments,
            timeout=timeout,
            stdin=stdin,
        )
        if not output.ok:
            # Above its last line are its client's own notes.
            said = (output.said.splitlines() or [""])[-1]
            raise StepFailure("EtcdUnhealthy", f"etcdctl {' '.join(arguments[:2])}: {said}")
        return output.out

    def etcdctl(self, *arguments: str, timeout: float = 20):
        """What etcdctl says, as JSON."""
        said = self.command(*arguments, timeout=timeout)
        try:
            return json.loads(said)
        except ValueError as error:
            raise StepFailure("EtcdUnhealthy", f"etcdctl {' '.join(arguments[:2])} said no JSON: {error}") from error

    def list(self) -> tuple:
        """(ID of the cluster, ID of the member that answers, members), as a majority agrees on it."""
        said = self.etcdctl("member", "list")
        return said["header"]["cluster_id"], said["header"]["member_id"], said["members"]

    def own_id(self) -> str:
        """ID of the member that answers, hexadecimal; empty when it does not say."""
        try:
            return f"{self.list()[1]:x}"
        except StepFailure:
            return ""

    def members(self) -> list:
        return self.list()[2]

    def cluster_ids(self) -> dict:
        """The cluster's ID as each endpoint tells it."""
        return {
            entry["Endpoint"]: entry["Status"]["header"]["cluster_id"] for entry in self.etcdctl("endpoint", "status")
        }

    def leader(self) -> int:
        """ID of the leader."""
        return self.status()["leader"]

    def read(self) -> None:
        """A linearizable read: it fails without a majority, and what it waits for is applied by this member."""
        self.etcdctl("get", NO_KEY, "--consistency=l", "--keys-only")

    def status(self) -> dict:
        """What the first of the members says of itself."""
        return self.etcdctl("endpoint", "status")[0]["Status"]

    def statuses(self) -> dict:
        """What each endpoint says of itself; an endpoint that does not answer is a failure."""
        return {entry["Endpoint"]: entry["Status"] for entry in self.etcdctl("endpoint", "status")}

    def hashes(self, revision: int) -> dict:
        """(hash of all keys up to the revision, the revision up to which it was compacted) by endpoint."""
        patience = f"--command-timeout={HASH_SECONDS}s"
        said = self.etcdctl("endpoint", "hashkv", f"--rev={revision}", patience, timeout=HASH_SECONDS + 10)
        return {entry["Endpoint"]: (entry["HashKV"]["hash"], entry["HashKV"].get("compact_revision")) for entry in said}

    def alarms(self) -> list:
        """Every alarm there is, as memberID and alarm."""
        return self.etcdctl("alarm", "list").get("alarms") or []

    def alarms_by_member(self) -> dict:
        """Names of the alarms, by the ID of the member; those of no member stand under 0."""
        found: dict = {}
        for alarm in self.alarms():
            name = ALARMS.get(alarm.get("alarm"), str(alarm.get("alarm")))
            found.setdefault(alarm.get("memberID", 0), []).append(name)
        return found

    def change(self, *arguments: str) -> None:
        """A change of members, which etcd refuses until all have been connected for some seconds, and for the rest of the
        second in which a member with the same URL came and went (it would get the same ID): it is asked again."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self.etcdctl("member", *arguments)
                return
            except StepFailure as failure:
                same_id = arguments[0] == "add" and "member not found" in failure.message
                if not (same_id or "unhealthy cluster" in failure.message) or time.monotonic() > deadline:
                    raise
            time.sleep(0.5)

    def remove(self, member: dict) -> None:
        self.change("remove", hexadecimal(member))

    def check_quorum_without(self, leaving: dict) -> None:
        """The voters that stay must have a majority of healthy ones among them, or etcd would stop with the removal."""
        if leaving.get("isLearner"):
            return
        stay = [member for member in self.members() if not member.get("isLearner") and member["ID"] != leaving["ID"]]
        well = [member for member in stay if any(self.healthy_soon(url) for url in member.get("clientURLs") or [])]
        if len(well) < len(stay) // 2 + 1:
            sick = ", ".join(label(member) for member in stay if member not in well) or "nobody"
            raise StepFailure(
                "QuorumRisk",
                f"etcd would lose its majority without {label(leaving)}: of the {len(stay)} that stay, {len(well)} are"
                f" healthy (not: {sick}): repair these first",
            )

    def add_learner(self, name: str, peer_url: str) -> list:
        """Adds the member unless it is there, and returns all as name=URL. A learner takes part in no vote, so a
        member that never comes up costs no quorum."""
        members = self.members()
        if not any(peer_url in member["peerURLs"] for member in members):
            self.change("add", name, f"--peer-urls={peer_url}", "--learner")
            members = self.members()
        return [
            f"{name if url == peer_url else member.get('name')}={url}" for member in members for url in member["peerURLs"]
        ]

    def promote(self, peer_url: str, timeout: float, why=lambda: "") -> bool:
        """Makes a learner a voting member once it caught up. True when it was one."""
        learners = [member for member in self.members() if peer_url in member["peerURLs"] and member.get("isLearner")]
        if not learners:
            return False
        said = ""

        def promoted() -> bool:
            nonlocal said
            try:
                self.etcdctl("member", "promote", hexadecimal(learners[0]))
            except StepFailure as failure:
                said = failure.message
                # A promotion whose answer was lost.
                return not any(member["ID"] == learners[0]["ID"] and member.get("isLearner") for member in self.members())
            return True

        wait(promoted, timeout, "EtcdUnhealthy", lambda: f"learner {peer_url} has not caught up: {said}{why()}", pause=0.5)
        return True


def hexadecimal(member: dict) -> str:
    """The member's ID as etcdctl takes it."""
    return f"{member['ID']:x}"


def label(member: dict) -> str:
    """The member for a sentence: one that never started has no name."""
    return member.get("name") or ", ".join(member.get("peerURLs") or [])
