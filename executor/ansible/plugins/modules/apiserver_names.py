#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The names in the certificate of this machine's API server."""

from __future__ import annotations

DOCUMENTATION = r"""
module: apiserver_names
short_description: Makes the API server's certificate hold all the names and addresses wanted, and looks at what the cluster tells newcomers
description:
  - What kubeadm made is looked at as it is served. With a name missing, kubeadm makes the certificate again, and the names are added to the
    cluster's configuration; the API server takes a new certificate up by itself.
  - A name that was C(given) once, and is wanted no more, is taken out of both. What was given is remembered beside the configuration.
  - Fails with EndpointWrong when C(cluster-info) names another endpoint or authority than the cluster has.
options:
  names:
    description: Names and addresses that must be in it.
    type: list
    elements: str
    required: true
  given:
    description: Those of them that the cluster's owner gives.
    type: list
    elements: str
    default: []
  endpoint:
    description: Host and port that clients use.
    type: dict
    required: true
  timeout_seconds:
    description: Until a new certificate is served.
    type: int
    default: 120
extends_documentation_fragment:
  - clusterwright.cluster.arguments.apiserver
  - clusterwright.cluster.arguments.node
author:
  - Clusterwright developers
"""

import ipaddress
import json
import os
import socket

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, cluster_info, files, kubeadm_config
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api, wait
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.trust import believing

PKI = "/etc/kubernetes/pki"
CERTIFICATE = f"{PKI}/apiserver.crt"
KEY = f"{PKI}/apiserver.key"
CONFIGURATION = "/run/clusterwright/kubeadm-certs.yaml"


def plain(name: str) -> str:
    """Addresses in one form."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name.lower()


def served(params: dict) -> set:
    """Names in the certificate that the API server shows; it must be of the cluster's authority."""
    try:
        context = believing(cafile=f"{PKI}/ca.crt")
        context.check_hostname = False
        with socket.create_connection((params["address"], params["port"]), timeout=5) as plain_socket:
            with context.wrap_socket(plain_socket) as connection:
                certificate = connection.getpeercert() or {}
    except OSError as error:
        raise StepFailure("ApiserverNotReady", f"the API server of this machine shows no good certificate: {error}") from error
    return {plain(value) for _kind, value in certificate.get("subjectAltName", ())}


def missing(params: dict, there: set) -> list:
    return sorted(name for name in set(params["names"]) if name and plain(name) not in there)


def own(params: dict, text: str) -> set:
    """The names that kubeadm puts into every API server's certificate."""
    service = "kubernetes.default.svc"
    names = ["kubernetes", "kubernetes.default", service, f"{service}.{api.field(text, 'dnsDomain')}", params["node_name"], params["address"]]
    subnet = api.field(text, "serviceSubnet").split(",")[0]
    first = [ipaddress.ip_network(subnet)[1]] if subnet else []
    return {plain(str(name)) for name in names + first}


def dropped(params: dict, given: list, text: str) -> list:
    """Names that were given once, and are not wanted any more."""
    wanted = {plain(name) for name in params["names"]} | own(params, text)
    return sorted(name for name in given if plain(name) not in wanted)


def differing(params: dict, there: set, unwanted: list) -> list:
    """How the names that are there differ from those wanted, in words."""
    lacks = missing(params, there)
    has = [name for name in unwanted if plain(name) in there]
    return [*([f"it lacks {', '.join(lacks)}"] if lacks else []), *([f"it has {', '.join(has)}"] if has else [])]


def with_names(params: dict, lacks: list, found: dict, text: str) -> tuple:
    """The cluster's configuration with the names that the certificate lacks and without those that are not wanted any more; and all names
    that were ever given."""
    given = kubeadm_config.given_names(found)
    unwanted = dropped(params, given, text)
    names = kubeadm_config.items(text, kubeadm_config.NAMES)
    wanted = [name for name in names if name not in unwanted] + [name for name in lacks if name not in names]
    text = kubeadm_config.with_items(text, kubeadm_config.NAMES, wanted) if wanted != names else text
    return text, {kubeadm_config.GIVEN: given + [name for name in params["given"] if name not in given]}


def renew(params: dict, text: str) -> None:
    """Lets kubeadm make the certificate again; the old one comes back when it cannot."""
    os.makedirs(os.path.dirname(CONFIGURATION), mode=0o700, exist_ok=True)
    files.write(CONFIGURATION, f"{json.dumps(kubeadm_config.init_configuration(params))}\n---\n{text}", files.SECRET)
    old = [(path, f"{path}.old") for path in (CERTIFICATE, KEY)]
    for path, kept in old:
        os.replace(path, kept)
    output = attempt("kubeadm", "init", "phase", "certs", "apiserver", f"--config={CONFIGURATION}", timeout=60)
    files.remove(CONFIGURATION)
    for path, kept in old:
        if output.ok:
            files.remove(kept)
        else:
            os.replace(kept, path)
    if not output.ok:
        raise StepFailure("KubeadmFailed", f"kubeadm made no certificate for the API server: {output.said}")


def check_info(client: Api, params: dict) -> None:
    """Machines that join believe this ConfigMap."""
    text = cluster_info.kubeconfig(client)
    wanted = f"https://{params['endpoint']['host']}:{params['endpoint']['port']}"
    if ":" in params["endpoint"]["host"]:
        wanted = f"https://[{params['endpoint']['host']}]:{params['endpoint']['port']}"
    server = api.field(text, "server")
    if server != wanted or not cluster_info.believes_all(text):
        raise StepFailure(
            "EndpointWrong",
            f"ConfigMap cluster-info tells machines that join of {server or 'nothing'}, and the cluster's endpoint is {wanted}: correct it",
        )


def work(call) -> dict:
    params = call.params
    there = served(params)
    lacks = missing(params, there)
    try:
        client = Api(api.ADMIN)
        check_info(client, params)
        found, text = kubeadm_config.read(client)
        unwanted = dropped(params, kubeadm_config.given_names(found), text)
        has = [name for name in unwanted if plain(name) in there]
        due = differing(params, there, unwanted)
        if not call.check_mode:
            text = kubeadm_config.edit(client, lambda found, text: with_names(params, lacks, found, text))
            if due:
                renew(params, text)
    except OSError as error:
        raise StepFailure("ApiserverNotReady", f"the cluster's endpoint does not answer: {error}") from error
    if due and not call.check_mode:
        wait(
            lambda: not differing(params, served(params), unwanted),
            params["timeout_seconds"],
            "ApiserverNotReady",
            lambda: f"the API server still shows its old certificate: {' and '.join(differing(params, served(params), unwanted))}",
        )
    return {"changed": bool(due), "differences": lacks + has, "msg": "; ".join(due) or "all names are there, and no others that were given"}
