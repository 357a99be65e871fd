#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Tells everything that stands against an installation, at once."""

from __future__ import annotations

DOCUMENTATION = r"""
module: preflight
short_description: Checks a machine before anything is changed on it, and reports all findings at once
description:
  - Read-only, but for the bundle's index, which is kept in /run for the run.
  - The findings are in C(clusterwright.findings), each with name, severity (error or warning) and message.
  - Errors fail the task with reason PreflightFailed; warnings do not.
options:
  roles:
    description: What the machine will be, of control-plane, etcd, worker, karmada-control-plane.
    type: list
    elements: str
    required: true
  plane:
    description: It will be a machine of a Karmada control plane, which runs no Pods.
    type: bool
    default: false
  identity:
    description: What tells this cluster apart; a machine that belongs to it may have its leftovers.
    type: str
    required: true
  ip:
    description: The address that must be on an interface.
    type: str
    default: ""
  pod_cidr:
    description: Range of the Pods.
    type: str
    required: true
  service_cidr:
    description: Range of the Services.
    type: str
    required: true
  bridge:
    description: The Pod network is the built-in bridge, so no other cluster on this L2 network may use the Pods' range.
    type: bool
    default: false
  cluster_exists:
    description: Other machines of the cluster run already.
    type: bool
    default: false
  virtual_ip:
    description: The endpoint's address, where this machine will hold it. Empty - it will not.
    type: str
    default: ""
  virtual_ip_interface:
    description: Interface for it. Empty - the one with the machine's address.
    type: str
    default: ""
  endpoint_neighbours:
    description: Names of Hosts that may hold the address, by their own addresses; for messages.
    type: dict
    default: {}
  backends:
    description: All API servers, as host:port.
    type: list
    elements: str
    default: []
  etcd:
    description:
      - An external etcd, where this machine will have an API server. Empty - it will not, or etcd is not external.
      - Its C(endpoints) and the C(prefix) of the cluster's data; in PEM its authorities C(ca), the client's C(certificate) and C(key), and the
        cluster's own C(authority), by which its data is known; C(kube_version).
    type: dict
    default: {}
  artifacts:
    description: What the bundle must have, name and version.
    type: list
    elements: dict
    default: []
  sysctl:
    description: Kernel values that the prepare step will set, by name.
    type: dict
    default: {}
  machine_settings:
    description: What the cluster's configuration asks of the machine, as the prepare step gets it.
    type: dict
    default: {}
  kube_proxy_mode:
    description: The mode in which kube-proxy is to work. Empty - as it comes.
    type: str
    default: ""
  controller_time:
    description: Unix time on the controller, to compare clocks with.
    type: float
    default: 0
  memory_minimum_mib:
    description: Less is an error.
    type: int
    required: true
  memory_recommended_mib:
    description: Less is a warning.
    type: int
    required: true
  disk_minimum_mib:
    description: Free space needed under /var/lib.
    type: int
    required: true
  ignore:
    description: Names of findings that do not block.
    type: list
    elements: str
    default: []
  allow_unsupported_distribution:
    description: Other distributions are a warning, not an error.
    type: bool
    default: false
extends_documentation_fragment:
  - clusterwright.cluster.arguments.bundle
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils.finding import collect, report
from ansible_collections.clusterwright.cluster.plugins.module_utils.findings import CHECKS


def work(call) -> dict:
    return report(collect(CHECKS, call.params))
