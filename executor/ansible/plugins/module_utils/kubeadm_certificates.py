# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The certificates of a control plane that kubeadm renews with the authorities on the machine: it asks no API for that."""

from __future__ import annotations

import json
import os
import time

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    api,
    certificate_places,
    certificates,
    files,
    issuers,
    kubeadm_config,
    kubeconfigs,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.certificates import Certificate
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text

KUBECONFIGS = ("admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf")
# Each with the authority that signs it.
FILES = {"apiserver": "ca", "apiserver-kubelet-client": "ca", "front-proxy-client": "front-proxy-ca"}
CONFIGURATION = "/run/clusterwright/kubeadm-renew.yaml"


def found(name: str) -> Certificate | None:
    """As it is in its file; none on a machine that has none of this name."""
    if name in KUBECONFIGS:
        return certificates.in_kubeconfig(certificate_places.kubeconfigs()[name])
    return certificates.in_file(certificate_places.pki(name))


def is_foreign(name: str) -> bool:
    """Whether it was not signed by the authority that signs now, the first one in its file."""
    authority = text(certificate_places.pki(FILES.get(name, "ca")))
    if not authority:
        return False
    if name in KUBECONFIGS:
        pair = api.client_pair(text(certificate_places.kubeconfigs()[name]))
    else:
        pair = f"{text(certificate_places.pki(name))}\n{text(certificate_places.key(name))}"
    return not issuers.is_from(pair, authority)


def due(renew_before: int) -> list:
    """Names of those with less left than so many seconds, and of those of another authority than the one that signs now."""
    names = [(name, found(name)) for name in (*FILES, *KUBECONFIGS)]
    present = [(name, there) for name, there in names if there is not None]
    return [name for name, there in present if there.expires - time.time() <= renew_before or is_foreign(name)]


def configuration(params: dict) -> str:
    """With it kubeadm asks neither the cluster nor the internet for anything. Names and addresses it takes from the old certificates."""
    documents = (
        kubeadm_config.init_configuration(params),
        {
            "apiVersion": "kubeadm.k8s.io/v1beta4",
            "kind": "ClusterConfiguration",
            "kubernetesVersion": params["version"],
            "certificatesDir": f"{certificate_places.KUBERNETES}/pki",
            "encryptionAlgorithm": "ECDSA-P256",
            "certificateValidityPeriod": f"{params['validity_seconds']}s",
        },
    )
    return "\n---\n".join(map(json.dumps, documents)) + "\n"


def renew(names: list, params: dict) -> None:
    """Has kubeadm make them anew, and kubeconfigs believe all authorities again afterwards, also those of an attempt that was cut short."""
    if names:
        make_anew(names, params)
    kubeconfigs.trust(False)


def make_anew(names: list, params: dict) -> None:
    """One after the other: what was cut short goes on with the ones that are left."""
    os.makedirs(os.path.dirname(CONFIGURATION), mode=0o700, exist_ok=True)
    files.write(CONFIGURATION, configuration(params), files.SECRET)
    try:
        for name in names:
            before = found(name)
            output = attempt("kubeadm", "certs", "renew", name, f"--config={CONFIGURATION}", timeout=60)
            # Without the authority's key it says that it cannot, and ends well.
            if not output.ok or found(name) == before:
                raise StepFailure("KubeadmFailed", f"kubeadm did not renew {name}: {output.err.strip() or output.said}")
    finally:
        files.remove(CONFIGURATION)
