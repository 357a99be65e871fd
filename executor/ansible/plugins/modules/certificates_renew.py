#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Renews this machine's certificates."""

from __future__ import annotations

DOCUMENTATION = r"""
module: certificates_renew
short_description: Renews the leaf certificates of this machine, and proves by what is served that the new ones are in use
description:
  - Writes the certificates of etcd that are given, and has kubeadm renew those of the control plane that end within C(renew_before_seconds)
    or are of another authority than the one that signs now.
  - etcd and the API server take up new ones by themselves. Controller-manager and scheduler are started anew, since they read their
    kubeconfigs once.
  - Needs no API, so certificates that have ended already are renewed as well.
  - An attempt that was cut short is taken up; what is renewed already stays.
options:
  version:
    description: Version of Kubernetes, with v.
    type: str
    required: true
  validity_seconds:
    description: How long a new certificate of kubeadm's lasts.
    type: int
    required: true
  renew_before_seconds:
    description: One with less left is renewed.
    type: int
    required: true
  etcd_reads:
    description: All that etcd's unit reads, its program and its configuration among it. Empty on a machine without a member.
    type: list
    elements: path
    default: []
  timeout_seconds:
    description: Until the new ones are served, and who served before is healthy again.
    type: int
    default: 240
extends_documentation_fragment:
  - clusterwright.cluster.arguments.apiserver
  - clusterwright.cluster.arguments.files
  - clusterwright.cluster.arguments.node
author:
  - Clusterwright developers
"""

import os

from ansible_collections.clusterwright.cluster.plugins.module_utils import (
    api,
    certificate_places,
    certificates,
    component_process,
    control_plane,
    key_pairs,
    kubeadm_certificates,
    kubeadm_config,
    kubeconfigs,
    restarts,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

ETCD = "etcd.service"


def write_pairs(params: dict, check: bool) -> list:
    """Puts the pairs that are given into their places, and returns the paths that changed."""
    reads = params["etcd_reads"]
    before = units.state(ETCD) if reads else {}
    was_read = bool(reads) and not restarts.due(ETCD, before, reads)
    changed = key_pairs.write(params["files"] + params["secrets"], check)
    if was_read and changed and not check:
        # etcd reads its pairs anew at each handshake: nothing is owed for them.
        restarts.remember(ETCD, before, reads)
    return changed


def not_served(address: str, port: int) -> list:
    """What is served and is not what is in its file. etcd opens its clients' port once it has a majority: until then its peers' port
    tells."""
    found = []
    for name, place in certificate_places.served(address, port).items():
        on_disk = certificates.in_file(place[0])
        if on_disk is None:
            continue
        shown = certificate_places.at(place)
        if shown is None and name == "etcd-server":
            continue
        if shown != on_disk:
            found.append(f"{name}: {place[1]}:{place[2]} {'does not answer' if shown is None else 'shows another one'}")
    return found


def unread() -> list:
    """Kubeconfigs that are newer than the process that reads them."""
    return [name for name in certificate_places.READ_ONCE if is_there(name) and certificate_places.is_unread(name)]


def is_there(name: str) -> bool:
    return os.path.exists(certificate_places.kubeconfigs()[name])


def start_anew(names: list) -> None:
    """Ends the processes that read these kubeconfigs; the kubelet starts them."""
    for name in names:
        # A clock that was set back would leave it newer than any process.
        os.utime(certificate_places.kubeconfigs()[name])
        component_process.end(certificate_places.READ_ONCE[name])


def prove(params: dict, well_before: list, silent_before: list) -> None:
    """Waits until the new ones are in use. Who was not healthy before need not be now: with certificates that have ended, a cluster comes
    back only when all its machines have new ones."""
    said: list = []

    def proved() -> bool:
        said[:] = [text for text in not_served(params["address"], params["port"]) if text not in silent_before]
        said.extend(f"{name} is not read yet" for name in unread())
        sick = control_plane.unhealthy(well_before, params["address"], params["port"])
        said.extend(f"{name} is not healthy: {text}" for name, text in sick.items())
        return not said

    api.wait(
        proved,
        params["timeout_seconds"],
        "CertificateNotServed",
        lambda: f"the new certificates are not in use: {'; '.join(said)}{units.journal('kubelet.service')}",
        pause=1,
    )


def set_validity(params: dict) -> str:
    """Has control planes that join later follow the same validity. What came of it, where it is not done."""
    wanted = params["validity_seconds"]

    def with_validity(_found: dict, text: str) -> tuple:
        has = kubeadm_config.seconds(kubeadm_config.scalar(text, kubeadm_config.VALIDITY)) == wanted
        return (text if has else kubeadm_config.with_scalar(text, kubeadm_config.VALIDITY, f"{wanted}s")), None

    try:
        kubeadm_config.edit(api.Api(api.ADMIN), with_validity)
    except (OSError, api.Refused, StepFailure) as error:
        return f"; ConfigMap kubeadm-config does not have {kubeadm_config.VALIDITY} {wanted}s yet: {error}"
    return ""


def work(call) -> dict:
    params, check = call.params, call.check_mode
    address, port = params["address"], params["port"]
    mine = control_plane.present()
    names = kubeadm_certificates.due(params["renew_before_seconds"]) if mine else []
    if check:
        missing = write_pairs(params, True) + names + kubeconfigs.trust(True) + not_served(address, port) + unread()
        return {"changed": bool(missing), "msg": f"not renewed: {'; '.join(missing)}" if missing else "all are renewed"}
    sick_before = control_plane.unhealthy(mine, address, port)
    well_before = [name for name in mine if name not in sick_before]
    silent_before = [text for text in not_served(address, port) if text.endswith("does not answer")]
    changed = write_pairs(params, False) + names + kubeconfigs.trust(True)
    kubeadm_certificates.renew(names, params)
    late = unread()
    start_anew(late)
    prove(params, well_before, silent_before)
    more = set_validity(params) if mine else ""
    report = {"kind": "certificates", "certificates": certificate_places.seen(address, port)}
    said = f"renewed: {', '.join(changed)}" if changed else "nothing was due"
    return {"changed": bool(changed or late), "msg": said + more, "clusterwright": report}
