# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The certificates of a machine of a cluster: where each is, who serves it, and which are in use."""

from __future__ import annotations

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import certificates, component_process
from ansible_collections.clusterwright.cluster.plugins.module_utils.certificates import Certificate

KUBERNETES = "/etc/kubernetes"
# The keys that the API server encrypts Secrets with.
ENCRYPTION = f"{KUBERNETES}/encryption/config.json"
ETCD_PKI = "/etc/etcd/pki"
KUBELET_PKI = "/var/lib/kubelet/pki"
ETCD_CLIENT_PORT, ETCD_PEER_PORT = 2379, 2380
KUBELET_PORT, CONTROLLER_MANAGER_PORT, SCHEDULER_PORT = 10250, 10257, 10259
# Components that read their kubeconfig once, when they start.
READ_ONCE = {"controller-manager.conf": "kube-controller-manager", "scheduler.conf": "kube-scheduler"}


def pki(name: str) -> str:
    return f"{KUBERNETES}/pki/{name}.crt"


def key(name: str) -> str:
    return f"{KUBERNETES}/pki/{name}.key"


# Of a control plane: the one that signs, or encrypts, is the first in each. etcd's own, beside an API server, may be somebody else's.
AUTHORITIES = (pki("ca"), pki("front-proxy-ca"), f"{KUBERNETES}/pki/sa.pub", ENCRYPTION)


def files() -> dict:
    """Certificates that are read from their files, by name."""
    return {
        "kubernetes-ca": pki("ca"),
        "front-proxy-ca": pki("front-proxy-ca"),
        "apiserver-kubelet-client": pki("apiserver-kubelet-client"),
        "apiserver-etcd-client": pki("apiserver-etcd-client"),
        "front-proxy-client": pki("front-proxy-client"),
        "etcd-ca": f"{ETCD_PKI}/ca.crt",
        "etcd-healthcheck-client": f"{ETCD_PKI}/healthcheck-client.crt",
    }


def kubeconfigs() -> dict:
    """Kubeconfigs with a client's certificate, by name."""
    names = ("admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf", "kubelet.conf")
    return {name: f"{KUBERNETES}/{name}" for name in names}


def served(address: str, port: int) -> dict:
    """(file, address, port) of what is served from a file, by name."""
    return {
        "apiserver": (pki("apiserver"), address, port),
        "etcd-server": (f"{ETCD_PKI}/server.crt", "127.0.0.1", ETCD_CLIENT_PORT),
        "etcd-peer": (f"{ETCD_PKI}/peer.crt", address, ETCD_PEER_PORT),
    }


def own(address: str) -> dict:
    """(what tells that it is there, address, port) of what a process made for itself, by name."""
    manifests = f"{KUBERNETES}/manifests"
    return {
        "kubelet-serving": (f"{KUBERNETES}/kubelet.conf", address, KUBELET_PORT),
        "controller-manager-serving": (f"{manifests}/kube-controller-manager.yaml", "127.0.0.1", CONTROLLER_MANAGER_PORT),
        "scheduler-serving": (f"{manifests}/kube-scheduler.yaml", "127.0.0.1", SCHEDULER_PORT),
    }


def etcd_client() -> tuple:
    """The pair that a member lets in, if this machine has it."""
    pair = tuple(f"{ETCD_PKI}/healthcheck-client.{kind}" for kind in ("crt", "key"))
    return pair if all(os.path.exists(path) for path in pair) else ()


def at(place: tuple) -> Certificate | None:
    """What is served from the file, at the address."""
    path, address, port = place
    return certificates.served(address, port, etcd_client() if path.startswith(f"{ETCD_PKI}/") else ())


def is_unread(name: str) -> bool:
    """Whether the component whose kubeconfig it is began before the kubeconfig was what it is."""
    component = READ_ONCE.get(name)
    return bool(component) and component_process.is_older(component, kubeconfigs()[name])


def entry(name: str, certificate: Certificate, outdated: bool = False) -> dict:
    told = {"name": name, "expiresAt": certificate.expires, "issuer": certificate.issuer}
    return {**told, "outdated": True} if outdated else told


def seen(address: str, port: int) -> list:
    """All that the machine has, as it is reported: what is served, where it is; else what is in the file."""
    found = []
    for name, place in served(address, port).items():
        on_disk = certificates.in_file(place[0])
        if on_disk is not None:
            shown = at(place)
            found.append(entry(name, shown or on_disk, outdated=shown is not None and shown != on_disk))
    for name, path in files().items():
        if (certificate := certificates.in_file(path)) is not None:
            found.append(entry(name, certificate))
    # An etcd of others has its authority there.
    if all(told["name"] != "etcd-ca" for told in found) and (authority := certificates.in_file(f"{KUBERNETES}/pki/etcd/ca.crt")):
        found.append(entry("etcd-ca", authority))
    for name, path in kubeconfigs().items():
        if (certificate := certificates.in_kubeconfig(path)) is not None:
            found.append(entry(name, certificate, outdated=is_unread(name)))
    for name, (there, *where) in own(address).items():
        if os.path.exists(there) and (shown := certificates.served(*where)) is not None:
            found.append(entry(name, shown))
    return sorted(found, key=lambda told: (told["expiresAt"], told["name"]))
