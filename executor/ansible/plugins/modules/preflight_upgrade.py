#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Tells everything that stands against another version of Kubernetes, at once."""

from __future__ import annotations

DOCUMENTATION = r"""
module: preflight_upgrade
short_description: Checks a machine of a cluster, and on one machine the cluster, before another version comes
description:
  - Read-only, but for the bundle's index, which is kept in /run for the run.
  - The findings are in C(clusterwright.findings), each with name, severity (error or warning) and message.
  - Errors fail the task with reason PreflightFailed; warnings do not.
options:
  roles:
    description: What the machine is, of control-plane, etcd, worker.
    type: list
    elements: str
    required: true
  version:
    description: The version of Kubernetes that is to come, with v.
    type: str
    required: true
  asks_api:
    description: This machine asks the API what there is to say of the cluster as a whole.
    type: bool
    default: false
  artifacts:
    description: What the bundle must have, name and version.
    type: list
    elements: dict
    default: []
  containerd_version:
    description: Version of containerd that is asked for. Empty - the one that belongs to the version.
    type: str
    default: ""
  disk_minimum_mib:
    description: Free space needed under /var/lib.
    type: int
    required: true
  ignore:
    description: Names of findings that do not block.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - clusterwright.cluster.arguments.apiserver
  - clusterwright.cluster.arguments.bundle
  - clusterwright.cluster.arguments.etcd
author:
  - Clusterwright developers
"""

from ansible_collections.clusterwright.cluster.plugins.module_utils import upgrade_api_use, upgrade_cluster, upgrade_findings
from ansible_collections.clusterwright.cluster.plugins.module_utils.finding import collect, report
from ansible_collections.clusterwright.cluster.plugins.module_utils.findings import artifacts

OF_CLUSTER = (
    upgrade_cluster.versions,
    upgrade_cluster.nodes,
    upgrade_cluster.apiservers,
    upgrade_cluster.disruption_budgets,
    upgrade_cluster.gates,
    upgrade_api_use.deprecated_apis,
    upgrade_api_use.webhooks,
    upgrade_api_use.api_services,
)


def work(call) -> dict:
    of_cluster = OF_CLUSTER if call.params["asks_api"] else ()
    return report(collect((*upgrade_findings.CHECKS, artifacts, *of_cluster), call.params))
