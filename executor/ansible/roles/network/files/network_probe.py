#!/usr/bin/python3
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Asks other nodes and the cluster's DNS whether they answer, and reports in two conditions of this machine's Node.

Whom to ask is in an annotation of the Node, which the operator writes. Standard library only, Python 3.9 and later. Usage:
network_probe.py CONFIGURATION, a JSON file with `node`, `dnsDomain` and `kubeconfig`."""

from __future__ import annotations

import base64
import contextlib
import errno
import http.client
import ipaddress
import json
import os
import random
import re
import selectors
import socket
import ssl
import struct
import sys
import time
import urllib.parse
from typing import NamedTuple

ANNOTATION = "clusterwright.dev/network-probe"
NETWORK = "clusterwright.dev/PodNetworkUnreachable"
DNS = "clusterwright.dev/ClusterDNSUnreachable"
# What the API gives is bounded here: the annotation, its peers, a whole answer, a condition's message.
ANNOTATION_LIMIT = 8192
PEERS_LIMIT = 8
PARTIAL_CHAIN = 0x80000  # OpenSSL's X509_V_FLAG_PARTIAL_CHAIN
ANSWER_LIMIT = 8 * 1024 * 1024
MESSAGE_LIMIT = 1024
# Packets that are no answer to the question, of one server.
STRAYS_LIMIT = 64
NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
IN_PROGRESS = (errno.EINPROGRESS, errno.EWOULDBLOCK)


class Timing(NamedTuple):
    """Seconds, and how many rounds without an answer make a fault."""

    interval: float = 20
    connect: float = 2
    query: float = 2
    queries: int = 2
    rounds: int = 3
    refresh: float = 300
    unasked: float = 60
    request: float = 10


class Peer(NamedTuple):
    """Another node, and where it is asked."""

    node: str
    address: str
    port: int


class Targets(NamedTuple):
    """Whom this machine asks. `source` is the address to ask peers from, or empty; `dns` an address and a port, or None."""

    source: str
    peers: tuple
    dns: tuple | None


class Verdict(NamedTuple):
    """What a condition is to say."""

    status: str
    reason: str
    message: str


class ApiError(Exception):
    """The API does not answer, or not with what was asked for."""


# --- Decisions: no sockets, no clock.


def parse_ip(text: object) -> str:
    """The address as the standard library writes it; ValueError when it is none, or has a scope."""
    if not isinstance(text, str) or "%" in text:
        raise ValueError(f"{text!r:.80} is no IP address")
    return str(ipaddress.ip_address(text))


def parse_endpoint(text: object) -> tuple:
    """(address, port) of IP:port, of [IP]:port for IPv6; ValueError otherwise."""
    if not isinstance(text, str):
        raise ValueError(f"{text!r:.80} is no IP:port")
    host, _colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    address = parse_ip(host[1:-1] if bracketed else host)
    if bracketed != (":" in address) or not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r:.80} is no IP:port")
    return address, int(port)


def parse_targets(text: object) -> Targets:
    """The annotation's content; ValueError says what is wrong with it. Unknown fields are a newer operator's."""
    if not isinstance(text, str) or len(text) > ANNOTATION_LIMIT:
        raise ValueError(f"it is no text of at most {ANNOTATION_LIMIT} characters")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    listed = value.get("peers") or []
    if not isinstance(listed, list) or len(listed) > PEERS_LIMIT:
        raise ValueError(f"peers is no list of at most {PEERS_LIMIT}")
    peers = []
    for entry in listed:
        node = entry.get("node") if isinstance(entry, dict) else None
        if not isinstance(node, str) or not NODE_NAME.fullmatch(node):
            raise ValueError(f"{entry!r:.80} names no node")
        peers.append(Peer(node, *parse_endpoint(entry.get("address"))))
    source = parse_ip(value["source"]) if value.get("source") else ""
    return Targets(source, tuple(dict.fromkeys(peers)), parse_endpoint(value["dns"]) if value.get("dns") else None)


def mapping(value: object) -> dict:
    """The value where it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


class Probe:
    """What is known: the targets, how many rounds each was silent, and what the Node's conditions say."""

    def __init__(self, rounds: int = Timing().rounds) -> None:
        self.rounds = rounds
        self.targets: Targets | None = None
        self.complaint = ""
        self.reported: dict = {}
        # By target, since it answered last; what kept it from answering the last time.
        self.silent: dict = {}
        self.errors: dict = {}

    def learn(self, node: dict) -> None:
        """Takes the targets and our conditions from the Node. Targets that stay keep their count: a fault is judged by all that are asked
        now. An annotation that cannot be read counts as none, and `complaint` says why."""
        annotation = mapping(mapping(node.get("metadata")).get("annotations")).get(ANNOTATION)
        self.targets, self.complaint = None, ""
        if annotation is not None:
            try:
                self.targets = parse_targets(annotation)
            except ValueError as error:
                self.complaint = str(error)
        conditions = mapping(node.get("status")).get("conditions")
        ours = [entry for entry in conditions if mapping(entry).get("type") in (NETWORK, DNS)] if isinstance(conditions, list) else []
        self.reported = {entry["type"]: entry for entry in ours}
        self.silent = {target: self.silent[target] for target in self.asked() if target in self.silent}
        self.errors = {target: self.errors[target] for target in self.asked() if target in self.errors}

    def asked(self) -> tuple:
        """Everything that is asked in a round."""
        if self.targets is None:
            return ()
        return self.targets.peers + ((self.targets.dns,) if self.targets.dns else ())

    def count(self, errors: dict) -> None:
        """Takes a round's results: by target what kept it from answering, empty when it answered."""
        self.errors = {target: errors[target] for target in self.asked() if target in errors}
        self.silent = {target: self.silent.get(target, 0) + 1 for target, error in self.errors.items() if error}

    def judge_peers(self) -> Verdict | None:
        """None while it is not decided: what the Node says stays."""
        peers = self.targets.peers
        if not peers:
            return Verdict("False", "NoPeers", "no other node is given to be asked")
        if not all(peer in self.errors for peer in peers):
            return None
        failed = [peer for peer in peers if self.errors[peer]]
        lasting = [peer for peer in failed if self.silent[peer] >= self.rounds]
        # Addresses of Pods are asked from one; with other plugins it is the machines.
        who = "nodes' Pod networks" if self.targets.source else "nodes"
        message = f"{len(peers) - len(failed)} of {len(peers)} {who} answer"
        if failed:
            message += "; not: " + ", ".join(f"{peer.node} ({peer.address}: {self.errors[peer]})" for peer in failed)
        if 2 * len(lasting) > len(peers):
            return Verdict("True", "PeersUnreachable", message[:MESSAGE_LIMIT])
        if 2 * len(failed) > len(peers):
            return None
        return Verdict("False", "PeersAnswer", message[:MESSAGE_LIMIT])

    def judge_dns(self) -> Verdict | None:
        """None while it is not decided: what the Node says stays."""
        target = self.targets.dns
        if target not in self.errors:
            return None
        if not self.errors[target]:
            return Verdict("False", "DNSAnswers", f"the cluster's DNS ({target[0]}) answers")
        if self.silent[target] < self.rounds:
            return None
        return Verdict("True", "DNSUnreachable", f"the cluster's DNS ({target[0]}) does not answer: {self.errors[target]}")

    def verdicts(self) -> dict:
        """Those that are decided, by type of condition."""
        if self.targets is None:
            return {}
        found = {NETWORK: self.judge_peers(), DNS: self.judge_dns() if self.targets.dns else None}
        return {kind: verdict for kind, verdict in found.items() if verdict}

    def begins_fault(self) -> bool:
        """Whether a fault was found that the Node does not show yet."""
        return any(
            verdict.status == "True" and self.reported.get(kind, {}).get("status") != "True"
            for kind, verdict in self.verdicts().items()
        )

    def conditions(self, now: str, heartbeat: bool) -> list:
        """What the Node's conditions are patched with, empty when nothing: all that are decided when one of them says something else
        than the Node or a `heartbeat` is due. A condition about what nobody asks any more is removed: either status would be a claim."""
        wanted = {NETWORK} if self.targets else set()
        if self.targets and self.targets.dns:
            wanted.add(DNS)
        removed = [{"$patch": "delete", "type": kind} for kind in (NETWORK, DNS) if kind in self.reported and kind not in wanted]
        patches, changed = [], heartbeat
        for kind, verdict in self.verdicts().items():
            before = self.reported.get(kind, {})
            since = before.get("lastTransitionTime")
            if before.get("status") != verdict.status or not isinstance(since, str):
                since = now
            changed = changed or (before.get("status"), before.get("reason")) != (verdict.status, verdict.reason)
            patches.append({"type": kind, **verdict._asdict(), "lastTransitionTime": since, "lastHeartbeatTime": now})
        return removed + (patches if changed else [])

    def patched(self, conditions: list) -> None:
        """The Node has these now."""
        for condition in conditions:
            if "$patch" in condition:
                self.reported.pop(condition["type"], None)
            else:
                self.reported[condition["type"]] = condition


# --- Questions to peers and to the DNS.


def explain(number: int) -> str:
    """An error as part of a sentence."""
    if number == errno.ETIMEDOUT:
        return "timed out"
    text = os.strerror(number)
    return text[:1].lower() + text[1:]


def family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def dial(peer: Peer, source: str) -> tuple:
    """(socket, error number) of a connection that begins."""
    connection = socket.socket(family(peer.address), socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        if source and family(source) == family(peer.address):
            try:
                connection.bind((source, 0))
            except OSError as error:
                # Before the bridge is made the address is not there.
                if error.errno != errno.EADDRNOTAVAIL:
                    raise
        return connection, connection.connect_ex((peer.address, peer.port))
    except BaseException:
        connection.close()
        raise


def part(connection: socket.socket, seconds: float) -> None:
    """Ends a connection after the TLS handshake, when the other end has said goodbye, too: a kubelet writes a line to its log for each
    that ends before."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        connection.settimeout(seconds)
        with context.wrap_socket(connection) as secured:
            secured.unwrap()
    except (OSError, ValueError):
        pass


def ask_peers(peers: tuple, source: str, seconds: float) -> dict:
    """By peer what kept it from answering, all asked at once; empty where one answered. A refusal is an answer."""
    errors = dict.fromkeys(peers, "timed out")
    connected = []
    deadline = time.monotonic() + seconds

    def conclude(peer: Peer, connection: socket.socket, number: int) -> None:
        errors[peer] = "" if number in (0, errno.ECONNREFUSED) else explain(number)
        if number == 0:
            connected.append(connection)
        else:
            connection.close()

    with selectors.DefaultSelector() as waiting:
        for peer in peers:
            try:
                connection, number = dial(peer, source)
            except OSError as error:
                errors[peer] = explain(error.errno or errno.EIO)
                continue
            if number in IN_PROGRESS:
                waiting.register(connection, selectors.EVENT_WRITE, peer)
            else:
                conclude(peer, connection, number)
        while waiting.get_map():
            left = deadline - time.monotonic()
            ready = waiting.select(max(0.0, left))
            # What came while this process had to wait for a CPU came in time.
            if not ready and left <= 0:
                break
            for key, _events in ready:
                waiting.unregister(key.fileobj)
                conclude(key.data, key.fileobj, key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
        for key in list(waiting.get_map().values()):
            key.fileobj.close()
    for connection in connected:
        with connection:
            part(connection, seconds / 2)
    return errors


def query(number: int, name: str) -> bytes:
    """A question for the IPv4 address of a name; ValueError when it is none."""
    labels = [label.encode("ascii") for label in name.rstrip(".").split(".")]
    if not all(0 < len(label) < 64 for label in labels):
        raise ValueError(f"{name!r:.80} is no DNS name")
    question = b"".join(bytes((len(label),)) + label for label in labels) + b"\0"
    return struct.pack(">6H", number, 0x0100, 1, 0, 0, 0) + question + struct.pack(">2H", 1, 1)


def ask_dns(server: tuple, name: str, seconds: float, queries: int) -> str:
    """What kept the DNS from answering, empty when it did. Any answer with the question's number counts, also that there is no
    such name."""
    number = int.from_bytes(os.urandom(2), "big")
    message, said = query(number, name), "timed out"
    try:
        with socket.socket(family(server[0]), socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as connection:
            connection.connect(server)
            for _attempt in range(queries):
                deadline = time.monotonic() + seconds
                try:
                    connection.send(message)
                    for _answer in range(STRAYS_LIMIT):
                        # Also what came while this process had to wait for a CPU is read.
                        connection.settimeout(max(0.01, deadline - time.monotonic()))
                        if connection.recv(4096)[:2] == message[:2]:
                            return ""
                    said = "timed out"
                except OSError as error:
                    # A time-out of Python's has no number.
                    said = explain(error.errno or errno.ETIMEDOUT)
    except OSError as error:
        return explain(error.errno or errno.EIO)
    return said


# --- The API.


def field(text: str, name: str) -> str:
    """The value of a scalar in a kubeconfig with one cluster and one user, as kubeadm and the kubelet write it; empty when there is none.
    ValueError when there are several."""
    found = re.findall(rf"^[ -]*{re.escape(name)}:[ \t]*(\S+)[ \t]*$", text, re.MULTILINE)
    if len(found) > 1:
        raise ValueError(f"{name} is there {len(found)} times")
    return found[0].strip("\"'") if found else ""


@contextlib.contextmanager
def material(text: str, name: str):
    """The path of what the kubeconfig gives as a file or as data, empty when it gives neither. Data is put where it reads as a file and is
    on no disk: the TLS library takes only files."""
    data = field(text, f"{name}-data")
    if not data:
        yield field(text, name)
        return
    with os.fdopen(os.memfd_create("network-probe"), "wb") as memory:
        memory.write(base64.b64decode(data, validate=True))
        memory.flush()
        yield f"/proc/self/fd/{memory.fileno()}"


class Api:
    """The cluster's API as the kubelet reaches it. The kubeconfig and the certificate that it names are read for each request: the
    kubelet renews them."""

    def __init__(self, kubeconfig: str, seconds: float) -> None:
        self.kubeconfig, self.seconds = kubeconfig, seconds

    def connection(self) -> http.client.HTTPSConnection:
        with open(self.kubeconfig, encoding="utf-8") as source:
            text = source.read(1024 * 1024)
        server = urllib.parse.urlsplit(field(text, "server"))
        if server.scheme != "https" or not server.hostname:
            raise ValueError(f"{self.kubeconfig} names no server with https")
        with contextlib.ExitStack() as stack:
            names = ("certificate-authority", "client-certificate", "client-key")
            authority, certificate, key = (stack.enter_context(material(text, name)) for name in names)
            if not authority or not certificate:
                raise ValueError(f"{self.kubeconfig} has no certificate-authority or no client-certificate")
            context = ssl.create_default_context(cafile=authority)
            # As programs in Go: also an authority that another one issued, and what they do not ask of a certificate is not asked.
            context.verify_flags = context.verify_flags & ~ssl.VERIFY_X509_STRICT | PARTIAL_CHAIN
            context.load_cert_chain(certificate, key or None)
        return http.client.HTTPSConnection(server.hostname, server.port or 443, timeout=self.seconds, context=context)

    def request(self, method: str, path: str, body: object = None) -> dict:
        """The object in the answer. ApiError when there is none."""
        try:
            connection = self.connection()
            try:
                headers = {"Accept": "application/json", "User-Agent": "clusterwright-network-probe"}
                if body is not None:
                    headers["Content-Type"] = "application/strategic-merge-patch+json"
                connection.request(method, path, None if body is None else json.dumps(body), headers)
                answer = connection.getresponse()
                data = answer.read(ANSWER_LIMIT + 1)
            finally:
                connection.close()
            if len(data) > ANSWER_LIMIT:
                raise ValueError(f"the answer is larger than {ANSWER_LIMIT} bytes")
            value = json.loads(data)
        except (OSError, ValueError, RecursionError, http.client.HTTPException) as error:
            raise ApiError(f"failed to {method} {path}: {error or type(error).__name__}") from error
        if not 200 <= answer.status < 300:
            raise ApiError(f"failed to {method} {path}: HTTP {answer.status}: {mapping(value).get('message')}")
        return mapping(value)


# --- The service.


class Journal:
    """Says each thing once, until it is another one."""

    def __init__(self) -> None:
        self.said: dict = {}

    def tell(self, topic: str, text: str, resolved: str = "") -> None:
        """`text` is empty when all is well; `resolved` is said when it was not."""
        before = self.said.get(topic, "")
        self.said[topic] = text
        line = text or resolved
        if text != before and line:
            # What others say may hold anything.
            print("".join(char if char.isprintable() else " " for char in line[:2000]), flush=True)


class Service:
    """The rounds of one machine."""

    def __init__(self, node: str, name: str, api: Api, timing: Timing = Timing()) -> None:
        self.path = f"/api/v1/nodes/{node}"
        self.node, self.name, self.api, self.timing = node, name, api, timing
        self.probe = Probe(timing.rounds)
        self.journal = Journal()
        self.refresh_at = 0.0
        self.refreshed = self.heartbeat = False

    def learn(self) -> None:
        """Reads the Node. Raises ApiError."""
        node = self.api.request("GET", self.path)
        if node.get("kind") != "Node" or mapping(node.get("metadata")).get("name") != self.node:
            raise ApiError(f"the answer to GET {self.path} is no Node {self.node}")
        self.probe.learn(node)
        complaint = self.probe.complaint
        said = f"the annotation {ANNOTATION} counts as none: {complaint}" if complaint else ""
        self.journal.tell("annotation", said, "the annotation is understood again")

    def refresh(self, moment: float) -> bool:
        """Reads the Node when it is time. Whether it did. Raises ApiError."""
        if moment < self.refresh_at:
            return False
        self.learn()
        # Once at any moment of the period, and from then on by it: machines that start together do not go on together.
        period = self.timing.refresh if self.probe.targets else self.timing.unasked
        pause = period * (1 if self.refreshed else random.random())
        self.refresh_at = moment + pause
        self.refreshed = self.heartbeat = True
        return True

    def ask(self) -> None:
        """One round of questions."""
        targets, timing = self.probe.targets, self.timing
        errors = ask_peers(targets.peers, targets.source, timing.connect)
        if targets.dns:
            errors[targets.dns] = ask_dns(targets.dns, self.name, timing.query, timing.queries)
        self.probe.count(errors)

    def report(self) -> None:
        """Patches the Node's conditions where there is something to say. Raises ApiError."""
        conditions = self.probe.conditions(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), self.heartbeat)
        if conditions:
            self.api.request("PATCH", f"{self.path}/status", {"status": {"conditions": conditions}})
            self.probe.patched(conditions)
            for condition in conditions:
                said = f"{condition['type']} {condition['status']} ({condition['reason']})" if "status" in condition else ""
                self.journal.tell(condition["type"], f"{said}: {condition['message']}" if said else "")
            self.heartbeat = False

    def round(self, moment: float) -> None:
        """One round. An API that does not answer is asked again in the next one; what was found stays."""
        problem = ""
        try:
            fresh = self.refresh(moment)
        except ApiError as error:
            problem = str(error)
        if self.probe.targets:
            self.ask()
        try:
            if not problem:
                # Machines may have left the cluster since: they are no fault.
                if self.probe.begins_fault() and not fresh:
                    self.learn()
                self.report()
        except ApiError as error:
            problem = str(error)
        self.journal.tell("API", problem, "the API answers again")

    def run(self) -> None:
        time.sleep(random.random() * self.timing.interval)
        while True:
            started = time.monotonic()
            self.round(started)
            time.sleep(max(0.0, started + self.timing.interval - time.monotonic()))


def main(path: str) -> None:
    with open(path, encoding="utf-8") as source:
        given = json.load(source)
    timing = Timing()
    Service(given["node"], f"kubernetes.default.svc.{given['dnsDomain']}.", Api(given["kubeconfig"], timing.request), timing).run()


if __name__ == "__main__":
    main(sys.argv[1])
