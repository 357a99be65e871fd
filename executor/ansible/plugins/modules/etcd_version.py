#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Refuses a version of etcd that this machine's member cannot go to."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_version
short_description: Whether this machine's member of etcd can go to a version
description:
  - etcd takes one minor at a time, and never goes back to an older one. It fails with C(EtcdVersionNotAllowed) before the program
    is replaced. Patches of the same minor are free.
  - Which version the member has is what it says itself; of one that does not answer, what was installed here last. A machine that
    has no data yet may have any.
  - Changes nothing.
options:
  version:
    description: The version that is wanted, with or without v.
    type: str
    required: true
  data_directory:
    description: Data of the member.
    type: path
    default: /var/lib/etcd
  pki_directory:
    description: Certificates and keys of the member.
    type: path
    required: true
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils import etcd_data, membership
from ansible_collections.clusterwright.cluster.plugins.module_utils.etcd import LOCAL, Etcd
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.versions import rank


def running(pki: str) -> str:
    """The version that the member says it has; empty when it does not answer."""
    try:
        return str(Etcd(pki, [LOCAL]).status().get("version") or "")
    except StepFailure:
        return ""


def installed() -> str:
    """The version that was installed here last; empty when that is not known."""
    record = membership.read(membership.ARTIFACTS).get("etcd")
    return str(record.get("version") or "") if isinstance(record, dict) else ""


def minor(version: str) -> tuple:
    """(3, 6) of 3.6.16."""
    return rank(version)[0][:2]


def check(has: str, wanted: str) -> None:
    (major, number), to = minor(has), minor(wanted)
    if to < (major, number):
        raise StepFailure(
            "EtcdVersionNotAllowed",
            f"etcd {wanted} is wanted, and this machine's member has {has}: etcd never goes back to an older minor;"
            f" have spec.versions.etcd name {major}.{number}.x; nothing was changed",
        )
    if to > (major, number + 1):
        raise StepFailure(
            "EtcdVersionNotAllowed",
            f"etcd {wanted} is wanted, and this machine's member has {has}: etcd takes one minor at a time;"
            f" have spec.versions.etcd name {major}.{number + 1}.x first; nothing was changed",
        )


def work(call) -> dict:
    params = call.params
    has = ""
    if etcd_data.identity(params["data_directory"]) is not None:
        has = running(params["pki_directory"]) or installed()
    if len(minor(has)) == 2:
        check(has, params["version"])
    return {"changed": False, "msg": f"{has or 'no etcd'} -> {params['version']}"}
