# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Preflight checks of an etcd that others run: what an API server on this machine would meet there, and whose data is in it. They ask
by HTTPS alone, for nothing is installed yet, and they write nothing."""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import ssl
import time
import urllib.parse

from ansible_collections.clusterwright.cluster.plugins.module_utils import membership
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import in_memory
from ansible_collections.clusterwright.cluster.plugins.module_utils.finding import error, warning
from ansible_collections.clusterwright.cluster.plugins.module_utils.versions import minor, rank

# The oldest etcd that kubeadm takes, by the minor of Kubernetes.
OLDEST = {"1.34": "3.5.24", "1.35": "3.5.24", "1.36": "3.5.24"}
NEWEST_KNOWN = "1.36"
TIMEOUT_SECONDS = 5
REFUSAL_SECONDS = 0.5
ANSWER_LIMIT = 4 * 1024 * 1024
EXPIRY_WARNING_DAYS = 30
# Where each API server notes the authority that its clients' certificates come from.
AUTHORITY = "configmaps/kube-system/extension-apiserver-authentication"
NAMESPACE = "namespaces/kube-system"
UID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
NO_CONTEXT = "etcd-client-certificate"


class Bad(Exception):
    """What is wrong with an endpoint: the finding's name and its message."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.message = message


class Endpoint:
    """One member, asked as an API server would."""

    def __init__(self, url: str, context: ssl.SSLContext) -> None:
        self.url = url
        self.context = context
        address = urllib.parse.urlsplit(url)
        self.target = (address.hostname or "", address.port or 2379)

    def connect(self) -> None:
        """That somebody listens, and shows a certificate that is believed."""
        try:
            connection = socket.create_connection(self.target, timeout=TIMEOUT_SECONDS)
        except OSError as problem:
            raise Bad(
                "etcd-unreachable",
                f"{self.url} does not answer this machine: {problem}: correct spec.etcd.endpoints, or let the machine reach it",
            ) from problem
        try:
            with self.context.wrap_socket(connection, server_hostname=self.target[0]) as greeted:
                wait_for_refusal(greeted)
        except ssl.SSLCertVerificationError as problem:
            raise Bad(
                "etcd-tls",
                f"{self.url}: its certificate is not believed: {problem.verify_message}: put the authority that it comes from into ca.crt of"
                " the Secret of spec.etcd.secretRef, or use an endpoint that the certificate names",
            ) from problem
        except ssl.SSLError as problem:
            raise self.refusal(problem) or Bad("etcd-tls", f"{self.url} does not speak TLS: {text_of(problem)}") from problem
        except TimeoutError as problem:
            raise silent(self.url, "connections") from problem
        except OSError as problem:
            raise Bad("etcd-tls", f"{self.url} does not speak TLS: {problem}") from problem

    def refusal(self, problem: ssl.SSLError) -> Bad | None:
        """That the member refuses the client, if that is what it says."""
        said = text_of(problem)
        if "ALERT" not in said.upper():
            return None
        return Bad(
            NO_CONTEXT,
            f"{self.url} refuses the client certificate: {said}: give tls.crt and tls.key that its authority issued, and that have not expired,"
            " in the Secret of spec.etcd.secretRef",
        )

    def ask(self, path: str, body: dict | None = None) -> tuple:
        """(HTTP status, what it says as JSON, None where it is none)."""
        connection = http.client.HTTPSConnection(*self.target, timeout=TIMEOUT_SECONDS, context=self.context)
        try:
            connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            said = answer.read(ANSWER_LIMIT)
        except ssl.SSLError as problem:
            raise self.refusal(problem) or unknown(self.url, text_of(problem)) from problem
        except TimeoutError as problem:
            raise silent(self.url, path) from problem
        except (OSError, http.client.HTTPException) as problem:
            raise unknown(self.url, f"{type(problem).__name__}: {problem}") from problem
        finally:
            connection.close()
        try:
            value = json.loads(said)
        except ValueError:
            value = None
        return answer.status, value if isinstance(value, dict) else None

    def check_version(self, kube_version: str) -> None:
        _status, said = self.ask("/version")
        version = str((said or {}).get("etcdserver") or "")
        kubernetes = minor(kube_version)
        oldest = OLDEST.get(kubernetes, OLDEST[NEWEST_KNOWN])
        if not version:
            raise unknown(self.url, "/version tells no version")
        if rank(version) < rank(oldest):
            raise Bad("etcd-version", f"{self.url} runs etcd {version}: Kubernetes {kubernetes} needs {oldest} or newer: upgrade etcd")

    def check_health(self) -> None:
        """A member reads with a majority before it says that it is healthy."""
        _status, said = self.ask("/health")
        if (said or {}).get("health") != "true":
            reason = str((said or {}).get("reason") or "it does not say why")
            raise Bad("etcd-unhealthy", f"{self.url} is not healthy, a linearizable read fails there: {reason[:300]}: repair etcd")

    def read(self, key: str, first_below: bool = False) -> tuple:
        """(ID of the cluster, the values there are): of the key, or of the first key below it; linearizable."""
        body: dict = {"key": base64.b64encode(key.encode()).decode(), "limit": "1"}
        if first_below:
            body["range_end"] = base64.b64encode((key[:-1] + chr(ord(key[-1]) + 1)).encode()).decode()
            body["keys_only"] = True
        status, said = self.ask("/v3/kv/range", body)
        if status != 200 or said is None:
            why = str((said or {}).get("message") or f"HTTP {status}")
            raise Bad(
                "etcd-data-unknown",
                f"{self.url}: whether another cluster has data there could not be read through etcd's gateway ({why[:300]}): see that none has,"
                " then name this finding in spec.preflight.ignore",
            )
        field = "key" if first_below else "value"
        values = [base64.b64decode(entry.get(field) or "") for entry in said.get("kvs") or []]
        return str((said.get("header") or {}).get("cluster_id") or ""), values


def wait_for_refusal(greeted: ssl.SSLSocket) -> None:
    """Since TLS 1.3 a client learns of a refusal only after its greeting, and not for sure once it has asked something."""
    greeted.settimeout(REFUSAL_SECONDS)
    try:
        greeted.recv(1)
    except TimeoutError:
        # The member waits to be asked.
        pass


def text_of(problem: Exception) -> str:
    return str(getattr(problem, "reason", None) or problem)


def silent(url: str, what: str) -> Bad:
    """A member that is there and does not answer, as one does that has not found a majority since its start."""
    return Bad("etcd-unhealthy", f"{url} does not answer {what} within {TIMEOUT_SECONDS} s: repair etcd")


def unknown(url: str, why: str) -> Bad:
    return Bad(
        "etcd-data-unknown",
        f"{url} does not answer over HTTP as etcd's client URLs do ({why}): what it is, and whose data it has, could not be seen: give an"
        " endpoint that does, or name this finding in spec.preflight.ignore",
    )


def context_of(etcd: dict) -> ssl.SSLContext:
    """As an API server would believe and be known. What a client in Go does not ask of a certificate is not asked here."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= getattr(ssl, "VERIFY_X509_PARTIAL_CHAIN", 0x80000)
    try:
        context.load_verify_locations(cadata=etcd["ca"])
    except (ssl.SSLError, ValueError) as problem:
        raise Bad("etcd-tls", f"ca.crt of the Secret of spec.etcd.secretRef cannot be read: {text_of(problem)}") from problem
    try:
        context.load_cert_chain(in_memory(etcd["certificate"].encode()), in_memory(etcd["key"].encode()), password=refuse_password)
    except (OSError, ValueError) as problem:
        raise Bad(
            NO_CONTEXT,
            f"tls.crt and tls.key of the Secret of spec.etcd.secretRef cannot be used together: {text_of(problem)}: give a certificate in PEM"
            " and its own private key without a passphrase",
        ) from problem
    return context


def refuse_password() -> str:
    """Nobody is there to type one."""
    raise ValueError("the key is protected by a passphrase")


def ends_soon(etcd: dict) -> list:
    """A client certificate that is about to expire: nobody renews it but its owner."""
    try:
        decode = ssl._ssl._test_decode_cert  # pylint: disable=protected-access
        seconds = ssl.cert_time_to_seconds(decode(in_memory(etcd["certificate"].encode()))["notAfter"]) - time.time()
    except Exception:  # pylint: disable=broad-except
        return []
    if seconds > EXPIRY_WARNING_DAYS * 86400:
        return []
    days = max(int(seconds // 86400), 0)
    message = f"the client certificate of the external etcd ends in {days} days: renew it in the Secret of spec.etcd.secretRef, then run etcd-endpoints"
    return [warning("etcd-certificate-ends", message)]


def body_of(certificate: str) -> str:
    """The certificate without its lines."""
    found = CERTIFICATE.search(certificate)
    return "".join(found.group(1).split()) if found else ""


def is_ours(stored: list, authority: str) -> bool:
    """Whether the API servers that wrote this trust the clients of this cluster's own authority."""
    wanted = body_of(authority)
    text = "".join(value.decode("latin-1") for value in stored)
    return bool(wanted) and wanted in "".join(text.replace("\\n", "").split())


def check_data(endpoint: Endpoint, params: dict) -> None:
    """Whose data is below the prefix: of this cluster alone, or nobody's."""
    etcd = params["etcd"]
    prefix = etcd["prefix"]
    _cluster, authority = endpoint.read(f"{prefix}/{AUTHORITY}")
    if is_ours(authority, etcd["authority"]):
        return
    _cluster, namespace = endpoint.read(f"{prefix}/{NAMESPACE}")
    _cluster, first = endpoint.read(f"{prefix}/", first_below=True)
    if params["cluster_exists"]:
        what = "another cluster's data" if namespace else "no data of this cluster"
        raise Bad(
            "etcd-data-missing",
            f"{endpoint.url} has {what} below {prefix}: this machine would join another etcd than that of the cluster: correct spec.etcd.endpoints",
        )
    # An API server of this machine that was cut off before it noted its authority.
    began_here = not authority and membership.belongs_to(params["identity"])
    if not first or began_here:
        return
    uid = UID.search(namespace[0]) if namespace else None
    whose = f"of a cluster whose namespace kube-system has the UID {uid.group().decode()}" if uid else f"such as {first[0].decode('utf-8', 'replace')[:200]}"
    raise Bad(
        "etcd-foreign-data",
        f"{endpoint.url} has data below {prefix} that is not this cluster's, {whose}: give another spec.etcd.prefix or an etcd that is empty;"
        f" or, if nobody needs that data any more, delete it yourself (etcdctl del --prefix {prefix}/)",
    )


def look(endpoint: Endpoint, params: dict) -> str:
    """Everything of one member; the ID of its cluster, if it tells."""
    endpoint.connect()
    endpoint.check_version(params["etcd"]["kube_version"])
    endpoint.check_health()
    try:
        return endpoint.read(f"{params['etcd']['prefix']}/{NAMESPACE}")[0]
    except Bad as bad:
        # Told once, where the data is looked at.
        if bad.name == "etcd-data-unknown":
            return ""
        raise


def external_etcd(params: dict) -> list:
    """What stands against an API server on this machine that uses the external etcd."""
    if not params["etcd"]:
        return []
    try:
        return all_of(params) + ends_soon(params["etcd"])
    except Bad as bad:
        return [error(bad.name, bad.message)]
    except Exception as problem:  # pylint: disable=broad-except
        # Data that nobody looked at may be another cluster's.
        return [error("etcd-data-unknown", f"the check of the external etcd failed: {type(problem).__name__}: {problem}: please report it")]


def all_of(params: dict) -> list:
    """What is found of all endpoints."""
    etcd = params["etcd"]
    context = context_of(etcd)
    found, well = [], {}
    for url in etcd["endpoints"]:
        endpoint = Endpoint(url, context)
        try:
            well[endpoint] = look(endpoint, params)
        except Bad as bad:
            found.append((bad.name, bad.message))
    # An API server does with those that are well; a cluster that begins is to have all of them.
    kind = warning if params["cluster_exists"] and well else error
    findings = [kind(name, message) for name, message in found]
    clusters = {cluster: endpoint.url for endpoint, cluster in well.items() if cluster}
    if len(clusters) > 1:
        seen = ", ".join(f"{url} of {int(cluster):x}" for cluster, url in sorted(clusters.items()))
        findings.append(error("etcd-split", f"the endpoints are of different etcds ({seen}): give those of one in spec.etcd.endpoints"))
    elif well:
        try:
            check_data(next(iter(well)), params)
        except Bad as bad:
            findings.append(error(bad.name, bad.message))
    return findings
