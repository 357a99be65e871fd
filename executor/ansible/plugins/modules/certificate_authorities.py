#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Brings this machine to the authorities that its cluster has by now."""

from __future__ import annotations

DOCUMENTATION = r"""
module: certificate_authorities
short_description: Authorities, leaves and kubeconfigs as a run brings them, in use on this machine
description:
  - Writes the files that are given. On a control plane, kubeadm makes those leaves anew that are not from the first certificate of their
    authority's file. All kubeconfigs believe all certificates of ca.crt. The kubelet gets the client certificate that is given, where
    the one that it has is of another authority.
  - What read them at its start alone, and has read others, starts anew, one after the other, API server first and the kubelet last.
    Whether a process has read what is there is asked of the process, so an attempt that was cut off is taken up.
  - On a control plane, ConfigMap cluster-info gets the same authorities.
  - Proves by what is served and accepted that all is in use.
options:
  version:
    description: Version of Kubernetes, with v.
    type: str
    required: true
  validity_seconds:
    description: How long a new certificate of kubeadm's lasts.
    type: int
    required: true
  kubelet_client:
    description: The kubelet's certificate and key, PEM, from the first certificate of ca.crt.
    type: str
    default: ""
  next_client:
    description: Certificate and key, PEM, of a client without rights, of an authority that is to sign next, whom the API server must know.
    type: str
    default: ""
  timeout_seconds:
    description: For each process to be healthy again, and for all to be proved.
    type: int
    default: 240
extends_documentation_fragment:
  - clusterwright.cluster.arguments.apiserver
  - clusterwright.cluster.arguments.files
  - clusterwright.cluster.arguments.node
author:
  - Clusterwright developers
"""

import http.client
import ssl
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    api,
    authority_reads,
    certificate_places,
    certificates,
    cluster_info,
    control_plane,
    healthz,
    issuers,
    key_pairs,
    kubeadm_certificates,
    kubeconfigs,
    kubelet_client,
    node_proof,
    succession,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text
from ansible_collections.clusterwright.cluster.plugins.module_utils.trust import believing

# Who is not healthy may be starting: an attempt was cut off behind its restart.
SETTLE_SECONDS = 30
UNAUTHORIZED = 401


class Machine:
    """The work on one machine."""

    def __init__(self, params: dict) -> None:
        self.params = params
        self.where = (params["address"], params["port"])
        self.components = control_plane.present()
        self.files = params["files"] + params["secrets"]

    def client(self) -> Api:
        """A control plane asks its own API server, with admin.conf: that this works is proved as well."""
        if not self.components:
            return Api(api.KUBELET)
        client = Api(api.ADMIN)
        client.server = f"https://{self.where[0]}:{self.where[1]}"
        return client

    def unhealthy(self, components: list) -> dict:
        return control_plane.unhealthy(components, *self.where)

    def settled(self) -> list:
        """The components that are healthy."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while (sick := self.unhealthy(self.components)) and time.monotonic() < deadline:
            time.sleep(1)
        return [name for name in self.components if name not in sick]

    def check_pairs(self) -> None:
        """Nothing is written where a key is not its certificate's, or the kubelet would get a certificate that nobody accepts."""
        given = {entry["path"]: entry["content"] for entry in self.files}
        for path in given:
            key = f"{path.removesuffix('.crt')}.key"
            # Of several certificates the key is the first one's.
            if path.endswith(".crt") and key in given and not is_pair(f"{given[path]}\n{given[key]}"):
                raise StepFailure("InvalidVariables", f"the key for {key} is not that of the first certificate for {path}: correct the run's files")
        succession.check(self.files, certificate_places.AUTHORITIES)
        wanted = given.get(certificate_places.pki("ca"), "")
        pair = self.params["kubelet_client"]
        if pair and not issuers.is_from(pair, wanted):
            raise StepFailure(
                "InvalidVariables",
                f"the kubelet's certificate for {self.params['node_name']} is not from the first certificate of pki.ca.crt: correct the run's files",
            )

    def write(self) -> list:
        """Brings all files; what changed."""
        changed = key_pairs.write(self.files, False)
        # With an authority that ended they would be due for ever.
        names = kubeadm_certificates.due(0) if self.components else []
        changed += names + [path for path in kubeconfigs.trust(True) if path not in changed]
        kubeadm_certificates.renew(names, self.params)
        if kubelet_client.is_foreign():
            if not self.params["kubelet_client"]:
                raise StepFailure("InvalidVariables", "the kubelet's certificate is of another authority, and the run brings none: give one")
            kubelet_client.write(self.params["kubelet_client"])
            kubelet_client.refer()
            changed.append(kubelet_client.CURRENT)
        return changed

    def start_anew(self, well: list) -> list:
        """Starts anew what has read something else, and what follows an API server that was; their names."""
        acted: list = []
        for turn in authority_reads.turns():
            follows = control_plane.APISERVER in acted and turn != [authority_reads.KUBELET]
            due = [name for name in turn if follows or authority_reads.is_owed(name)]
            if due:
                acted += due
                authority_reads.start_anew(due)
                self.wait(lambda due=due: [why for name in due for why in self.not_back(name, well)])
            for name in turn:
                authority_reads.remember(name)
        return acted

    def not_back(self, name: str, well: list) -> list:
        """Why it does not do yet what it did before it was started anew."""
        if authority_reads.is_owed(name):
            return [f"{name} has not been started anew"]
        if name == authority_reads.KUBELET:
            good, said = healthz.answer(healthz.KUBELET)
            return [] if good else [f"the kubelet is not healthy: {said}"]
        if name in well and not authority_reads.states(name):
            return [f"{name} does not run"]
        return [f"{name} is not healthy: {said}" for said in self.unhealthy([name] if name in well else []).values()]

    def unproved(self, well: list) -> list:
        """What is not yet in use as it should be. Who was not healthy before need not be now."""
        found = [f"{name} is not healthy: {said}" for name, said in self.unhealthy(well).items()]
        found += [f"{name} has read other files than those that are there" for name in authority_reads.owed()]
        if self.components and control_plane.APISERVER not in well:
            good, said = healthz.answer(healthz.KUBELET)
            return found + ([] if good else [f"the kubelet is not healthy: {said}"])
        found += self.not_shown() if self.components else []
        complaint = node_proof.complaint(self.client(), self.params["node_name"])
        return found + ([complaint] if complaint else [])

    def not_shown(self) -> list:
        """What the API server does not show or accept yet. It takes up both within about a minute."""
        address, port = self.where
        found = []
        shown = certificates.served(address, port)
        if shown is None or shown != certificates.in_file(certificate_places.pki("apiserver")):
            found.append(f"{address}:{port} does not show the certificate that is in {certificate_places.pki('apiserver')}")
        if self.params["next_client"] and is_refused(self.where, self.params["next_client"]):
            found.append(f"{address}:{port} does not accept clients of the next authority")
        return found

    def inform(self, well: list) -> str:
        """Has cluster-info believe the same. What came of it, where nobody can be asked."""
        try:
            cluster_info.trust(self.client(), False)
        except (OSError, api.Refused) as error:
            if control_plane.APISERVER in well:
                raise StepFailure("ApiserverNotReady", f"failed to change ConfigMap cluster-info in kube-public: {error}") from error
            return f"; ConfigMap cluster-info does not have the authorities yet: {error}"
        return ""

    def wait(self, lacking) -> None:
        said: list = []

        def done() -> bool:
            said[:] = lacking()
            return not said

        api.wait(
            done,
            self.params["timeout_seconds"],
            "CertificateNotServed",
            lambda: f"the authorities are not in use: {'; '.join(said)}{units.journal('kubelet.service')}",
            pause=1,
        )

    def bring(self) -> dict:
        self.check_pairs()
        well = self.settled()
        for name in authority_reads.names():
            if not authority_reads.is_owed(name):
                authority_reads.remember(name)
        changed = self.write()
        acted = self.start_anew(well)
        more = self.inform(well) if self.components else ""
        self.wait(lambda: self.unproved(well))
        said = [*(["written: " + ", ".join(changed)] if changed else []), *(["started anew: " + ", ".join(acted)] if acted else [])]
        report = {"kind": "certificates", "certificates": certificate_places.seen(*self.where)}
        return {"changed": bool(changed or acted), "msg": ("; ".join(said) or "all was so") + more, "clusterwright": report}

    def missing(self) -> list:
        """What is not as it should be."""
        found = [f"{path} differs" for path in key_pairs.write(self.files, True)]
        found += [f"{name} is not from the authority that signs" for name in (kubeadm_certificates.due(0) if self.components else [])]
        found += [f"{path} believes others than ca.crt has" for path in kubeconfigs.trust(True)]
        if kubelet_client.is_foreign():
            found.append("the kubelet's certificate is not from the authority that signs")
        found += [f"{name} has read other files than those that are there" for name in authority_reads.owed()]
        if self.components and not self.unhealthy([control_plane.APISERVER]):
            found += self.not_shown()
            if cluster_info.trust(self.client(), True):
                found.append("ConfigMap cluster-info believes others than ca.crt has")
        return found


def is_pair(text_of_both: str) -> bool:
    """Whether the key belongs to the first certificate."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(api.in_memory(text_of_both.encode("ascii")))
    except (ssl.SSLError, ValueError):
        return False
    return True


def is_refused(where: tuple, pair: str) -> bool:
    """Whether the API server does not know the client. Also true while it does not answer."""
    context = believing(cadata=text(certificate_places.pki("ca")))
    context.load_cert_chain(api.in_memory(pair.encode("ascii")))
    connection = http.client.HTTPSConnection(*where, timeout=5, context=context)
    try:
        connection.request("GET", "/version")
        return connection.getresponse().status == UNAUTHORIZED
    except (OSError, http.client.HTTPException):
        return True
    finally:
        connection.close()


def work(call) -> dict:
    machine = Machine(call.params)
    if not call.check_mode:
        return machine.bring()
    try:
        missing = machine.missing()
    except (OSError, api.Refused) as error:
        raise StepFailure("ApiserverNotReady", f"failed to ask this machine's API server: {error}") from error
    return {"changed": bool(missing), "msg": "; ".join(missing) or "the machine has and uses the authorities that are wanted"}
