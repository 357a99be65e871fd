# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""ConfigMap cluster-info: what machines that join believe."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, certificate_places, certificates, kubeconfigs
from ansible_collections.clusterwright.cluster.plugins.module_utils.api import Api
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

PATH = "/api/v1/namespaces/kube-public/configmaps/cluster-info"


def kubeconfig(client: Api) -> str:
    """The kubeconfig in it; empty where there is none."""
    return ((client.get(PATH) or {}).get("data") or {}).get("kubeconfig", "")


def believes_all(kubeconfig_text: str) -> bool:
    """Whether it has the authorities of this machine's ca.crt, and no others."""
    return kubeconfigs.authorities(kubeconfig_text) == certificates.all_in(text(certificate_places.pki("ca")))


def trust(client: Api, check: bool) -> bool:
    """Has it name the authorities of this machine's ca.crt. True when it named others. One that is not there is not made."""
    now = kubeconfig(client)
    if not now or believes_all(now):
        return False
    if not check:
        meant = kubeconfigs.with_authorities(now, text(certificate_places.pki("ca")))
        client.request("PATCH", PATH, {"data": {"kubeconfig": meant}}, api.MERGE)
    return True
