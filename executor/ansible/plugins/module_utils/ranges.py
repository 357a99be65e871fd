# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The Pods' ranges of the cluster that this machine was prepared for. Preflight saw nothing in them before."""

from __future__ import annotations

import ipaddress

from ansible_collections.clusterwright.cluster.plugins.module_utils import membership


def of_pods() -> list:
    """The ranges, as they were recorded."""
    found = []
    for part in str(membership.read(membership.CLUSTER).get("pod_cidr", "")).split(","):
        try:
            found.append(ipaddress.ip_network(part.strip()))
        except ValueError:
            continue
    return found


def within(network: object, ranges: list) -> bool:
    """Whether the network is a part of one of the ranges."""
    return any(network.version == known.version and network.subnet_of(known) for known in ranges)
